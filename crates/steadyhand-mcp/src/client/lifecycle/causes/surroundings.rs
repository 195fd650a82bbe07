//! Causes around the program: the machine, the network, services behind it, credentials.

use super::{Cause, Found, Row, base, ending, program, setting};
use crate::client::lifecycle::failure::{StartFailure, What};

/// The order matters: what is more certain comes first.
pub(super) const ROWS: &[Row] = &[
    (
        r"(?i)cannot connect to the docker daemon|is the docker daemon running|docker\.sock|dockerDesktopLinuxEngine",
        docker,
    ),
    (
        r"(?i)EADDRINUSE|address already in use|only one usage of each socket address|port (?P<port1>\d+) is (?:already )?(?:in use|allocated)",
        port_in_use,
    ),
    (
        r"(?i)ENOSPC|no space left on device|disk quota exceeded",
        no_space,
    ),
    (
        r"(?i)heap out of memory|MemoryError|cannot allocate memory|out of memory|ENOMEM|OOMKilled",
        memory,
    ),
    (
        r"(?x)
          (?i:(?:env(?:ironment)?\ (?:variable|var)s?)\ ?:?\ )['\x22`$]*(?P<var1>[A-Z][A-Z0-9_]{2,})\b
        | \b(?P<var2>[A-Z][A-Z0-9]*_[A-Z0-9_]+)['\x22`]?\ (?i:(?:env(?:ironment)?\ (?:variable|var)\ )?(?:is\ |was\ |must\ be\ |has\ to\ be\ |are\ )?(?:not\ set|not\ defined|not\ provided|not\ found|required|missing|set|undefined|empty))
        | KeyError:\ ['\x22](?P<var3>[A-Z][A-Z0-9_]{2,})['\x22]
        | (?i:missing\ (?:required\ )?(?:env(?:ironment)?\ (?:variable|var)s?:?\ )?)['\x22`$]*(?P<var4>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b
        | (?i:please\ (?:set|provide|export|define)(?:\ the|\ a|\ your)?\ )['\x22`$]*(?P<var5>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b
        | (?m:^)(?P<var6>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\n\s*(?:Field\ required|Required)
        | (?i:environment\ variable\ not\ found)|:\ NotPresent\b",
        variable_missing,
    ),
    (
        r"(?i)CERTIFICATE_VERIFY_FAILED|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|CERT_HAS_EXPIRED|ERR_TLS_CERT|self[- ]signed certificate|certificate (?:verify failed|has expired|is not trusted|signed by unknown authority)|invalid peer certificate|unknown ?issuer",
        certificate,
    ),
    (
        r"(?i)\b401\b|unauthori[sz]ed|not authori[sz]ed|(?:invalid|incorrect|bad|wrong|expired) (?:api[ _-]?key|access[ _-]?token|token|credentials?|password)|\b403\b[^\n]{0,20}forbidden|authentication (?:failed|required)|invalid_grant|bad credentials",
        credentials,
    ),
    (
        r"(?i)(?:ECONNREFUSED|connection ?refused|connect(?:ion)? (?:error|failed|timed out)|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|no route to host|network is unreachable|could not connect|failed to connect|unable to connect)(?:[^\n]{0,60}?\b(?P<where1>[\w.-]+:\d{2,5})\b)?",
        unreachable,
    ),
    (
        r"(?i)(?:getaddrinfo )?(?:ENOTFOUND|EAI_AGAIN) (?P<host1>[\w.-]+)|name or service not known|temporary failure in name resolution|nodename nor servname|failed to lookup address|could not resolve host:? ?(?P<host2>[\w.-]+)|no such host|getaddrinfo failed",
        name_unknown,
    ),
    (
        r"(?i)(?:EACCES|EPERM|permission ?(?:denied|error)|operation not permitted|access is denied)(?:[^\n]{0,80}?['\x22 ](?P<path1>/[^\s'\x22:]+))?",
        permission,
    ),
    (r"(?i)segmentation fault|core dumped|SIGSEGV", crashed),
    (r"(?i)no such file or directory", interpreter_missing),
];

fn docker(_: &Found<'_>, _: &StartFailure) -> Option<Cause> {
    Some(Cause::new(
        "The Docker daemon does not run, or this user may not talk to it.",
        "Start Docker (systemctl start docker, or Docker Desktop), then:  docker info",
        "Docker daemon running",
    ))
}

fn port_in_use(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let port = found.part("port").map_or_else(
        || port_after(&failure.evidence()),
        |port| Some(port.to_owned()),
    );
    let (which, look) = match port {
        Some(port) => (format!("Port {port}"), format!("lsof -i :{port}")),
        None => ("The port it wants".to_owned(), "lsof -i".to_owned()),
    };
    Some(Cause::new(
        format!(
            "{which} is taken, perhaps by another copy of {}.",
            base(failure)
        ),
        format!("See who holds it:  {look}     or give it another port."),
        format!("{} free", which.to_lowercase()),
    ))
}

/// `EADDRINUSE: address already in use :::3000`
fn port_after(evidence: &str) -> Option<String> {
    let (_, after) = evidence.split_once("ddress already in use")?;
    let line = after.lines().next()?;
    let (_, port) = line.rsplit_once(':')?;
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    (!port.is_empty()).then_some(port)
}

fn no_space(_: &Found<'_>, _: &StartFailure) -> Option<Cause> {
    Some(Cause::new(
        "There is no space left on the disk (or no file watchers).",
        "Free some:  df -h     and the caches of npm and uv:  npm cache clean --force, uv cache clean",
        "free disk space",
    ))
}

fn memory(_: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    Some(ending::out_of_memory(base(failure)))
}

fn variable_missing(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let server = &failure.server;
    let Some(name) = found.part("var") else {
        return Some(Cause::new(
            "An environment variable that it needs is not set.",
            format!(
                "Set it under [mcp.{server}.env]; only HOME, PATH and a few others are passed on by themselves."
            ),
            "environment variables",
        ));
    };
    Some(Cause::new(
        format!("The environment variable {name} is not set for it."),
        format!(
            "Set it:  env = {{ {name} = \"${{env:{name}}}\" }}  under [mcp.{server}]; a server does not get your whole environment."
        ),
        format!("environment variable {name} set"),
    ))
}

fn certificate(_: &Found<'_>, _: &StartFailure) -> Option<Cause> {
    Some(Cause::new(
        "A certificate was not accepted: a company proxy, a wrong clock, or one that has expired.",
        "Give it your authority's file in its env:  SSL_CERT_FILE (Python, Rust) or NODE_EXTRA_CA_CERTS (Node).",
        "certificates and the clock",
    ))
}

fn credentials(_: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    Some(Cause::new(
        "The service behind it does not accept the key or token it was given.",
        format!(
            "Check the key in the env of the server at {}.",
            setting(failure)
        ),
        "key or token valid",
    ))
}

fn unreachable(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let evidence = failure.evidence();
    let place = found
        .part("where")
        .map(str::to_owned)
        .or_else(|| address(&evidence));
    let port = place
        .as_deref()
        .and_then(|place| place.rsplit_once(':'))
        .map(|(_, port)| port);
    let service = service_behind(port, &evidence);
    let at = place
        .map(|place| format!(" at {place}"))
        .unwrap_or_default();
    Some(Cause::new(
        format!("Nothing answers{at}: the {service} it needs does not run, or is elsewhere."),
        format!(
            "Start the {service}, or correct its address at {}.",
            setting(failure)
        ),
        format!("{service} running"),
    ))
}

/// `127.0.0.1:1883` or `('127.0.0.1', 1883)`, wherever it stands.
fn address(evidence: &str) -> Option<String> {
    let is_address = |word: &&str| {
        word.rsplit_once(':').is_some_and(|(host, port)| {
            host.contains(|c: char| c.is_ascii_alphanumeric())
                && !host.contains(['/', '\\', '"'])
                && (2..=5).contains(&port.len())
                && port.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let words = evidence.split(|c: char| c.is_whitespace() || "()[]'\",;".contains(c));
    let trimmed = words.map(|word| word.rsplit_once("://").map_or(word, |(_, rest)| rest));
    trimmed
        .map(|word| word.trim_end_matches(['.', '/', ':']))
        .rfind(is_address)
        .map(str::to_owned)
}

/// Well-known ports, and words that give a service away.
fn service_behind(port: Option<&str>, evidence: &str) -> &'static str {
    const SERVICES: [(&str, &str, &str); 9] = [
        ("1883", "mqtt", "MQTT broker"),
        ("8883", "mosquitto", "MQTT broker"),
        ("5432", "postgres", "PostgreSQL server"),
        ("3306", "mysql", "MySQL server"),
        ("6379", "redis", "Redis server"),
        ("27017", "mongo", "MongoDB server"),
        ("9200", "elasticsearch", "Elasticsearch server"),
        ("8123", "home assistant", "Home Assistant server"),
        ("11434", "ollama", "Ollama server"),
    ];
    let by_port = SERVICES.iter().find(|(known, _, _)| port == Some(known));
    let words = evidence.to_lowercase();
    let by_words = || SERVICES.iter().find(|(_, word, _)| words.contains(word));
    by_port
        .or_else(by_words)
        .map_or("service", |(_, _, name)| name)
}

fn name_unknown(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let host = found
        .part("host")
        .map(|host| format!(" {host}"))
        .unwrap_or_default();
    Some(Cause::new(
        format!("The host{host} cannot be found: no network, no DNS, or a wrong name."),
        format!(
            "Check the network, and the address at {}.",
            setting(failure)
        ),
        format!("network, and the name of the host{host}"),
    ))
}

fn permission(found: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    if let What::NotStarted(_) = failure.what {
        return Some(ending::not_executable(failure));
    }
    let (what, check) = match found.part("path") {
        Some(path) => (
            format!("{path} to {}", base(failure)),
            format!("permissions of {path}"),
        ),
        None => (
            format!("something to {}", base(failure)),
            "permissions".to_owned(),
        ),
    };
    Some(Cause::new(
        format!("The system denies {what}."),
        "Give this user the right to it (ls -l shows who has), or use another folder.",
        check,
    ))
}

fn crashed(_: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    Some(Cause::new(
        format!("{} crashed: a fault in the program itself.", base(failure)),
        "Update or reinstall it; native parts may be built for another system.",
        format!("{} up to date and built for this system", base(failure)),
    ))
}

/// The program is there, and starting it says that something is not.
fn interpreter_missing(_: &Found<'_>, failure: &StartFailure) -> Option<Cause> {
    let What::NotStarted(_) = failure.what else {
        return None;
    };
    let program = failure.program.as_deref().unwrap_or(program(failure));
    let cwd = failure
        .cwd
        .as_deref()
        .map(|cwd| format!(", or the folder {cwd}"))
        .unwrap_or_default();
    Some(Cause::new(
        format!("{program} is there, but what its first line (`#!…`) names is not{cwd}."),
        "Install that interpreter, or name it in `command` and the script in `args`.",
        format!("the interpreter of {program}"),
    ))
}
