//! Likely causes of a failed start (SPEC V17): one real-looking text per row of the table.

use steadyhand_mcp::failure::{StartFailure, What};

use crate::failures::{TRACEBACK, exited, failure, github, killed, silent, talker};

/// What a server with these last words is likely to suffer from: the sentence, and the hint.
fn cause(command: &str, what: What, stderr: &str) -> (String, String) {
    let failure = failure(command, what, stderr);
    let cause = failure
        .cause()
        .unwrap_or_else(|| panic!("no cause for {stderr}"));
    assert!(!cause.next_step.is_empty(), "{cause:?}");
    (cause.sentence, cause.check)
}

/// Checks rows of: command, last words, the sentence.
fn check(rows: &[(&str, &str, &str)]) {
    for (command, stderr, expected) in rows {
        let (sentence, hint) = cause(command, exited(1), stderr);
        assert_eq!(sentence, *expected, "{stderr}");
        assert!(!hint.is_empty());
    }
}

#[test]
fn v17_cause_a_python_package_is_missing() {
    check(&[
        (
            "python3 server.py",
            &TRACEBACK.join("\n"),
            "Python has no package \"mcp\".",
        ),
        (
            "python3 -m mcp_server_time",
            "/usr/bin/python3: No module named mcp_server_time",
            "python3 here is /usr/bin/python3 and has no package \"mcp_server_time\".",
        ),
        (
            "uv run server.py",
            "ModuleNotFoundError: No module named 'yaml'",
            "Python has no package \"yaml\".",
        ),
        (
            "/opt/tool/bin/zwave",
            "ModuleNotFoundError: No module named 'paho.mqtt'",
            "Python has no package \"paho.mqtt\".",
        ),
    ]);
    let step = |command| {
        failure(
            command,
            exited(1),
            "ModuleNotFoundError: No module named 'paho.mqtt'",
        )
        .cause()
        .unwrap()
        .next_step
    };
    assert_eq!(
        step("uv run server.py"),
        "Use:  uv run --with paho-mqtt server.py"
    );
    assert_eq!(
        step("uvx zwave-mcp"),
        "Use:  uvx --with paho-mqtt zwave-mcp"
    );
    assert_eq!(
        step("zwave"),
        "Install it where zwave runs:  pip install paho-mqtt"
    );
}

#[test]
fn v17_cause_a_python_package_is_of_another_version() {
    check(&[(
        "mcp-server-sqlite --db-path x.db",
        "Traceback (most recent call last):\nImportError: cannot import name 'Server' from 'mcp.server' (/usr/lib/python3/dist-packages/mcp/server/__init__.py)",
        "The Python package mcp here is of another version than mcp-server-sqlite was written for: it has no \"Server\".",
    )]);
}

#[test]
fn v17_cause_a_node_package_is_missing() {
    check(&[
        (
            "node index.js",
            "Error: Cannot find module '@modelcontextprotocol/sdk/server/index.js'\nRequire stack:\n- /srv/index.js",
            "Node has no package \"@modelcontextprotocol/sdk/server/index.js\".",
        ),
        (
            "node index.mjs",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/index.mjs",
            "Node has no package \"zod\".",
        ),
    ]);
}

#[test]
fn v17_cause_the_script_itself_is_missing() {
    check(&[
        (
            "node dist/index.js",
            "node:internal/modules/cjs/loader:1228\n  throw err;\nError: Cannot find module '/srv/zwave/dist/index.js'",
            "The file /srv/zwave/dist/index.js does not exist.",
        ),
        (
            "python3 server.py",
            "python3: can't open file '/srv/server.py': [Errno 2] No such file or directory",
            "The file /srv/server.py does not exist.",
        ),
    ]);
    let built = failure(
        "node dist/index.js",
        exited(1),
        "Error: Cannot find module '/srv/dist/index.js'",
    );
    assert_eq!(
        built.cause().unwrap().next_step,
        "Build it first:  npm install && npm run build"
    );
}

#[test]
fn v17_cause_the_command_is_missing() {
    let sentence = |failure: StartFailure| failure.cause().unwrap().sentence;
    assert_eq!(
        sentence(github(&[])),
        "npx is not installed, or PATH does not hold it."
    );
    assert_eq!(
        sentence(github(&["/opt/homebrew/bin/npx"])),
        "npx exists at /opt/homebrew/bin/npx (Homebrew), but PATH does not hold it."
    );
    let path = What::NotFound {
        program: "./bin/server".to_owned(),
        path: String::new(),
        elsewhere: Vec::new(),
    };
    assert_eq!(
        cause("./bin/server", path, "").0,
        "There is no file ./bin/server."
    );
}

#[test]
fn v17_cause_a_command_inside_the_command_is_missing() {
    check(&[
        (
            "npx -y zwave-mcp",
            "sh: 1: zwave-mcp: not found",
            "npx runs zwave-mcp, which PATH does not hold.",
        ),
        (
            "./start.sh",
            "./start.sh: line 3: uv: command not found",
            "start.sh runs uv, which PATH does not hold.",
        ),
        (
            "mcp-server-everything",
            "env: ‘node’: No such file or directory",
            "mcp-server-everything runs node, which PATH does not hold.",
        ),
        (
            "/usr/local/bin/zwave",
            "/usr/bin/env: 'node': No such file or directory",
            "zwave runs node, which PATH does not hold.",
        ),
    ]);
}

#[test]
fn v17_cause_packages_are_still_being_downloaded() {
    for said in [
        "Downloading pydantic-core (1.9MiB)\nDownloading cryptography (4.2MiB)",
        "npm warn deprecated node-domexception@1.0.0: Use your platform's native DOMException instead",
        "Installed 32 packages in 210ms",
        "Unable to find image 'mcp/zwave:latest' locally\nlatest: Pulling from mcp/zwave",
        "   Building zwave @ file:///srv/zwave",
    ] {
        let (sentence, _) = cause("uvx zwave-mcp", silent(), said);
        assert_eq!(
            sentence, "uvx was still downloading or installing packages.",
            "{said}"
        );
    }
    // It is no cause of a crash.
    let (sentence, _) = cause(
        "uvx zwave-mcp",
        exited(1),
        "Downloading numpy\nModuleNotFoundError: No module named 'mcp'",
    );
    assert_eq!(sentence, "Python has no package \"mcp\".");
}

#[test]
fn v17_cause_a_package_does_not_exist() {
    check(&[
        (
            "npx -y @acme/zwave-mpc",
            "npm error code E404\nnpm error 404 Not Found - GET http://127.0.0.1:4873/@acme%2fzwave-mpc - Not found",
            "The registry does not have the package @acme/zwave-mpc, or not in the version asked for.",
        ),
        (
            "npx -y zwave-mpc",
            "npm ERR! code E404",
            "The registry does not have the package, or not in the version asked for.",
        ),
        (
            "pip install zwave-mpc",
            "ERROR: Could not find a version that satisfies the requirement zwave-mpc (from versions: none)\nERROR: No matching distribution found for zwave-mpc",
            "The registry does not have the package zwave-mpc, or not in the version asked for.",
        ),
        (
            "uvx zwave-mpc",
            "  × No solution found when resolving tool dependencies:\n  ╰─▶ Because zwave-mpc was not found in the package registry and you require zwave-mpc, we can conclude that your requirements are unsatisfiable.",
            "The registry does not have the package zwave-mpc, or not in the version asked for.",
        ),
    ]);
}

#[test]
fn v17_cause_npx_asks_and_nobody_answers() {
    let said = "Need to install the following packages:\nzwave-mcp@1.2.0\nOk to proceed? (y)";
    let failure = failure("npx zwave-mcp", silent(), said);
    let cause = failure.cause().unwrap();
    assert_eq!(
        cause.sentence,
        "npx asks whether it may install the package, and nobody can answer."
    );
    assert_eq!(cause.next_step, "Let it:  npx -y zwave-mcp");
}

#[test]
fn v17_cause_a_port_is_taken() {
    check(&[
        (
            "node zwave.js",
            "Error: listen EADDRINUSE: address already in use :::3000\n    at Server.setupListenHandle [as _listen2] (node:net:1817:16)",
            "Port 3000 is taken, perhaps by another copy of node.",
        ),
        (
            "python3 zwave.py",
            "OSError: [Errno 98] Address already in use",
            "The port it wants is taken, perhaps by another copy of python3.",
        ),
        (
            "zwave",
            "port 8091 is already in use",
            "Port 8091 is taken, perhaps by another copy of zwave.",
        ),
    ]);
}

#[test]
fn v17_cause_permission_denied() {
    check(&[
        (
            "node zwave.js",
            "Error: EACCES: permission denied, open '/var/lib/zwave/cache.db'",
            "The system denies /var/lib/zwave/cache.db to node.",
        ),
        (
            "python3 zwave.py",
            "PermissionError: [Errno 13] Permission denied: '/dev/ttyUSB0'",
            "The system denies /dev/ttyUSB0 to python3.",
        ),
        (
            "zwave",
            "permission denied",
            "The system denies something to zwave.",
        ),
    ]);
    let (sentence, _) = cause(
        "./zwave.sh",
        What::NotStarted("Permission denied (os error 13)".to_owned()),
        "",
    );
    assert_eq!(sentence, "./zwave.sh may not be executed.");
}

#[test]
fn v17_cause_an_environment_variable_is_missing() {
    for said in [
        "Error: GITHUB_TOKEN environment variable is not set",
        "Error: GITHUB_TOKEN is required",
        "GITHUB_TOKEN must be set",
        "Missing required environment variable: GITHUB_TOKEN",
        "Missing environment variables: GITHUB_TOKEN, OTHER",
        "KeyError: 'GITHUB_TOKEN'",
        "Please set GITHUB_TOKEN before you start",
        "Please provide your `GITHUB_TOKEN`",
        "error: the environment variable 'GITHUB_TOKEN' was not found",
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\nGITHUB_TOKEN\n  Field required [type=missing]",
        "Error: missing GITHUB_TOKEN",
    ] {
        let (sentence, check) = cause("github-mcp", exited(1), said);
        assert_eq!(
            sentence, "The environment variable GITHUB_TOKEN is not set for it.",
            "{said}"
        );
        assert_eq!(check, "environment variable GITHUB_TOKEN set");
    }
    let failure = failure("github-mcp", exited(1), "GITHUB_TOKEN is not set");
    let next_step = failure.cause().unwrap().next_step;
    assert!(
        next_step.contains(r#"env = { GITHUB_TOKEN = "${env:GITHUB_TOKEN}" }  under [mcp.zwave]"#),
        "{next_step}"
    );
    check(&[(
        "x",
        "called `Result::unwrap()` on an `Err` value: NotPresent",
        "An environment variable that it needs is not set.",
    )]);
}

#[test]
fn v17_cause_python_is_too_old() {
    for said in [
        "ERROR: Package 'zwave' requires a different Python: 3.8.10 not in '>=3.10'",
        "  File \"server.py\", line 4\n    match command:\n          ^\nSyntaxError: invalid syntax",
        "TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'",
        "error: the requested interpreter resolved to Python 3.8, which is incompatible with the project's Python requirement; it requires Python >=3.10",
        "Python 3.10 or newer is required",
    ] {
        let (sentence, _) = cause("python3 server.py", exited(1), said);
        assert_eq!(
            sentence, "The server wants a newer Python than python3 is.",
            "{said}"
        );
    }
}

#[test]
fn v17_cause_node_is_too_old() {
    for said in [
        "npm warn EBADENGINE Unsupported engine { required: { node: '>=22' }, current: { node: 'v18.0.0' } }",
        "SyntaxError: Unexpected token '??='",
        "ReferenceError: ReadableStream is not defined",
        "This tool requires Node.js 22",
        "SyntaxError: The requested module 'node:fs' does not provide an export named 'globSync'",
    ] {
        let (sentence, _) = cause("npx zwave", exited(1), said);
        assert_eq!(
            sentence, "The server wants a newer Node.js than the one npx uses.",
            "{said}"
        );
    }
}

#[test]
fn v17_cause_no_protocol_version_in_common() {
    let refused = What::Refused {
        code: -32602,
        message: "Unsupported protocol version: 2025-11-25".to_owned(),
    };
    assert_eq!(
        cause("zwave", refused, "").0,
        "zwave and Steadyhand have no version of MCP in common."
    );
    let refused = What::Malformed("protocol version 1999-01-01 is not supported".to_owned());
    assert_eq!(
        cause("zwave", refused, "").0,
        "zwave and Steadyhand have no version of MCP in common."
    );
}

#[test]
fn v17_cause_noise_and_then_silence() {
    let cause = talker().cause().unwrap();
    assert!(
        cause
            .sentence
            .starts_with("MCP servers must keep stdout for messages.")
    );
}

#[test]
fn v17_cause_a_certificate_is_not_accepted() {
    let sentence =
        "A certificate was not accepted: a company proxy, a wrong clock, or one that has expired.";
    check(&[
        (
            "x",
            "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate (_ssl.c:1006)",
            sentence,
        ),
        (
            "x",
            "FetchError: request to https://h failed, reason: self-signed certificate in certificate chain\n  code: 'SELF_SIGNED_CERT_IN_CHAIN'",
            sentence,
        ),
        (
            "x",
            "error sending request: invalid peer certificate: UnknownIssuer",
            sentence,
        ),
    ]);
}

#[test]
fn v17_cause_credentials_are_not_accepted() {
    let sentence = "The service behind it does not accept the key or token it was given.";
    check(&[
        ("x", "HttpError: Bad credentials - 401", sentence),
        ("x", "Error: Request failed with status code 401", sentence),
        ("x", "403 Forbidden", sentence),
        ("x", "Error: Invalid API key provided", sentence),
        ("x", "MQTT connection refused: Not authorized", sentence),
    ]);
}

#[test]
fn v17_cause_a_service_behind_it_does_not_answer() {
    check(&[
        (
            "node zwave.js",
            "Error: connect ECONNREFUSED 127.0.0.1:1883\n    at TCPConnectWrap.afterConnect",
            "Nothing answers at 127.0.0.1:1883: the MQTT broker it needs does not run, or is elsewhere.",
        ),
        (
            "python3 zwave.py",
            "Connecting to mqtt broker localhost\nConnectionRefusedError: [Errno 111] Connection refused",
            "Nothing answers: the MQTT broker it needs does not run, or is elsewhere.",
        ),
        (
            "pg-mcp",
            "could not connect to server: Connection refused\n\tIs the server running on host \"db\" and accepting\n\tTCP/IP connections on port 5432? postgres://db:5432/",
            "Nothing answers at db:5432: the PostgreSQL server it needs does not run, or is elsewhere.",
        ),
        (
            "x",
            "Failed to connect to http://10.0.0.7:9999/api",
            "Nothing answers at 10.0.0.7:9999: the service it needs does not run, or is elsewhere.",
        ),
    ]);
}

#[test]
fn v17_cause_a_host_cannot_be_found() {
    check(&[
        (
            "x",
            "Error: getaddrinfo ENOTFOUND broker.local",
            "The host broker.local cannot be found: no network, no DNS, or a wrong name.",
        ),
        (
            "x",
            "socket.gaierror: [Errno -2] Name or service not known",
            "The host cannot be found: no network, no DNS, or a wrong name.",
        ),
        (
            "x",
            "dns error: failed to lookup address information: Temporary failure in name resolution",
            "The host cannot be found: no network, no DNS, or a wrong name.",
        ),
    ]);
}

#[test]
fn v17_cause_memory_has_run_out() {
    let sentence = "node ran out of memory, or was killed to save some.";
    assert_eq!(cause("node x.js", exited(137), "").0, sentence);
    assert_eq!(cause("node x.js", killed(9, "SIGKILL"), "").0, sentence);
    let said = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory";
    assert_eq!(cause("node x.js", killed(6, "SIGABRT"), said).0, sentence);
}

#[test]
fn v17_cause_it_crashed() {
    let sentence = "node crashed: a fault in the program itself.";
    assert_eq!(cause("node x.js", killed(11, "SIGSEGV"), "").0, sentence);
    assert_eq!(cause("node x.js", exited(139), "").0, sentence);
    check(&[("node x.js", "Segmentation fault (core dumped)", sentence)]);
}

#[test]
fn v17_cause_the_disk_is_full() {
    let sentence = "There is no space left on the disk (or no file watchers).";
    check(&[
        (
            "npx x",
            "npm error code ENOSPC\nnpm error nospc ENOSPC: no space left on device, write",
            sentence,
        ),
        ("x", "OSError: [Errno 28] No space left on device", sentence),
    ]);
}

#[test]
fn v17_cause_it_is_no_program() {
    let what = What::NotStarted("Exec format error (os error 8)".to_owned());
    let (sentence, _) = cause("./zwave", what, "");
    assert_eq!(
        sentence,
        "./zwave is no program for this machine, or a script without a first line `#!…`."
    );
    assert_eq!(
        cause("./zwave", exited(126), "").0,
        "./zwave may not be executed."
    );
    let what = What::NotStarted("No such file or directory (os error 2)".to_owned());
    assert_eq!(
        cause("./zwave", what, "").0,
        "./zwave is there, but what its first line (`#!…`) names is not."
    );
}

#[test]
fn v17_cause_the_arguments_are_wrong() {
    check(&[
        (
            "mcp-server-time --zone UTC",
            "usage: mcp-server-time [-h] [--local-timezone LOCAL_TIMEZONE]\nmcp-server-time: error: unrecognized arguments: --zone UTC",
            "mcp-server-time does not know the argument --zone UTC.",
        ),
        (
            "zwave --zone",
            "error: unexpected argument '--zone' found\n\nUsage: zwave [OPTIONS]",
            "zwave does not know the argument --zone.",
        ),
        (
            "zwave -x",
            "error: unknown option '-x'",
            "zwave does not know the argument -x.",
        ),
        (
            "mcp-server-sqlite",
            "usage: mcp-server-sqlite [-h] --db-path DB_PATH\nmcp-server-sqlite: error: the following arguments are required: --db-path",
            "mcp-server-sqlite needs more arguments: --db-path.",
        ),
        (
            "mcp-server-filesystem",
            "Usage: mcp-server-filesystem <allowed-directory> [additional-directories...]",
            "mcp-server-filesystem was called with arguments it does not take.",
        ),
    ]);
}

#[test]
fn v17_cause_docker_does_not_run() {
    check(&[(
        "docker run -i --rm mcp/zwave",
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "The Docker daemon does not run, or this user may not talk to it.",
    )]);
}

#[test]
fn v17_cause_it_ended_by_itself() {
    let (sentence, check) = cause("zwave", exited(0), "");
    assert_eq!(
        sentence,
        "zwave ended by itself, without an error: is it an MCP server?"
    );
    assert_eq!(
        check,
        "zwave is an MCP server, and whether it needs a `stdio` argument"
    );
    assert_eq!(
        cause("zwave", killed(15, "SIGTERM"), "").0,
        "zwave was stopped from outside."
    );
    assert_eq!(
        cause("zwave", exited(127), "").0,
        "Something that zwave runs was not found."
    );
}

#[test]
fn v17_no_cause_is_made_up() {
    for said in [
        "",
        "starting server on stdio",
        "server listening",
        "INFO 42 devices known, version 1.4.0.1",
    ] {
        let failure = failure("zwave", exited(1), said);
        assert_eq!(failure.cause(), None, "{said}");
    }
}
