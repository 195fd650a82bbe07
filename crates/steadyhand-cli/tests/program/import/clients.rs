//! A real-looking file of every program, and what it means.

use steadyhand_config::import::Client;

use super::{import, lines, notes, problems};

fn check(client: Client, file: &str, text: &str, expected: &[&str]) {
    let imported = import(client, file, text);
    assert_eq!(lines(&imported), expected, "{file}");
    assert_eq!(problems(&imported), Vec::<String>::new(), "{file}");
}

#[test]
fn claude_desktop_takes_texts_as_they_stand() {
    let text = r#"{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Desktop"]
    },
    "github": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"],
      "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}" }
    }
  }
}"#;
    let file = "/home/ada/.config/Claude/claude_desktop_config.json";
    check(
        Client::ClaudeDesktop,
        file,
        text,
        &[
            "filesystem: stdio npx [-y @modelcontextprotocol/server-filesystem /home/ada/Desktop]",
            "github: stdio docker [run -i --rm -e GITHUB_TOKEN ghcr.io/github/github-mcp-server] GITHUB_TOKEN=${GITHUB_TOKEN}",
        ],
    );
    let imported = import(Client::ClaudeDesktop, file, text);
    assert_eq!(
        notes(&imported),
        [
            "11:32 'github': 'env.GITHUB_TOKEN' holds a variable, but Claude Desktop replaces none: it is taken as it stands"
        ]
    );
    let origin = &imported.servers[1].origin;
    assert_eq!((origin.line, origin.column), (8, 5));
    assert_eq!(origin.client, Client::ClaudeDesktop);
}

#[test]
fn claude_code_reads_the_project_and_the_user() {
    let project = r#"{"mcpServers": {
      "api": {"type": "http", "url": "${API_URL:-https://api.example.com}/mcp",
              "headers": {"Authorization": "Bearer ${TOKEN}"}},
      "events": {"type": "sse", "url": "https://h.example/sse"},
      "db": {"command": "~/bin/db", "args": ["--region=${REGION}", "$REGION", "${x%y}"], "env": {}},
      "lost": {"command": "x", "env": {"A": "${NOT_SET}", "B": "${ALSO_NOT}"}}
    }}"#;
    check(
        Client::ClaudeCode,
        "/work/app/.mcp.json",
        project,
        &[
            "api: http https://api.example.com/mcp Authorization: Bearer tok-123456789",
            "events: sse https://h.example/sse",
            "db: stdio /home/ada/bin/db [--region=north-europe $REGION ${x%y}]",
            "lost: stdio x [] A=${NOT_SET} B=${ALSO_NOT} !env.A ${NOT_SET} !env.B ${ALSO_NOT}",
        ],
    );
    let user = r#"{
      "numStartups": 12, "oauthAccount": {"emailAddress": "a@b.c"},
      "mcpServers": {"notes": {"command": "notes"}, "shared": {"command": "user"}},
      "projects": {
        "/work/app": {"allowedTools": [], "mcpServers": {"shared": {"command": "local"}, "off": {"command": "x"}},
                      "disabledMcpServers": ["off"]},
        "/elsewhere": {"mcpServers": {"unseen": {"command": "no"}}}
      }}"#;
    check(
        Client::ClaudeCode,
        "/home/ada/.claude.json",
        user,
        &[
            "shared: stdio local []",
            "off: stdio x [] off",
            "notes: stdio notes []",
        ],
    );
}

#[test]
fn vs_code_files_have_comments_inputs_env_files_and_its_own_words() {
    let text = r#"{
  // asked once
  "inputs": [
    {"type": "promptString", "id": "key", "description": "API key", "password": true},
    {"type": "pickString", "id": "branch", "options": ["main", {"label": "Next", "value": "next"}], "default": "main"},
  ],
  "servers": {
    "local": {
      "type": "stdio",
      "command": "${workspaceFolder}/bin/server",
      "args": ["--home", "${userHome}", "--name=${workspaceFolderBasename}", "a${pathSeparator}b", "${input:branch}"],
      "cwd": "sub",
      "env": {"A": "${input:key}", "B": null, "C": 3, "D": true},
      "dev": {"watch": "src/**", "debug": {"type": "node"}},
    },
    "remote": {"type": "http", "url": "https://h.example/mcp", "headers": {"X": "${env:TOKEN}"}, "gallery": true},
    "odd": {"command": "${config:x.y}"},
  },
}"#;
    let file = "/work/app/.vscode/mcp.json";
    check(
        Client::VsCode,
        file,
        text,
        &[
            "local: stdio /work/app/bin/server [--home /home/ada --name=app a/b main] A=${input:key} -B C=3 D=true in /work/app/sub !env.A ${input:key}",
            "remote: http https://h.example/mcp X: tok-123456789",
            "odd: stdio ${config:x.y} [] !command ${config:x.y}",
        ],
    );
    let imported = import(Client::VsCode, file, text);
    assert_eq!(notes(&imported), Vec::<String>::new());
    let inputs: Vec<(&str, bool, usize)> = imported
        .inputs
        .iter()
        .map(|input| (input.id.as_str(), input.password, input.options.len()))
        .collect();
    assert_eq!(inputs, [("key", true, 0), ("branch", false, 2)]);
}

#[test]
fn vs_code_settings_of_old_are_read_too() {
    let text =
        r#"{"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}}"#;
    check(
        Client::VsCode,
        "/work/app/.vscode/settings.json",
        text,
        &["a: stdio x []"],
    );
}

#[test]
fn cursor_has_the_words_of_an_editor_in_its_user_file_too() {
    let text = r#"{"mcpServers": {
      "a": {"command": "python", "args": ["${workspaceFolder}/s.py"], "env": {"K": "${env:TOKEN}"}},
      "b": {"url": "http://localhost:3000/sse", "headers": {"K": "v"}}}}"#;
    check(
        Client::Cursor,
        "/home/ada/.cursor/mcp.json",
        text,
        &[
            "a: stdio python [/work/app/s.py] K=tok-123456789",
            "b: http|sse http://localhost:3000/sse K: v",
        ],
    );
}

#[test]
fn windsurf_says_server_url_and_switches_tools_off() {
    let text = r#"{"mcpServers": {
      "a": {"serverUrl": "https://h.example/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"},
            "disabledTools": ["rm"]},
      "b": {"command": "x", "disabled": true, "timeout": 60}}}"#;
    let file = "/home/ada/.codeium/windsurf/mcp_config.json";
    check(
        Client::Windsurf,
        file,
        text,
        &[
            "a: http|sse https://h.example/mcp Authorization: Bearer tok-123456789 deny=rm",
            "b: stdio x [] off call=60s",
        ],
    );
    let said = notes(&import(Client::Windsurf, file, text));
    assert_eq!(
        said,
        [
            "4:58 'b': 'timeout' is taken as 60s: below 1000 it counts seconds, from there on milliseconds"
        ]
    );
}

#[test]
fn gemini_counts_milliseconds_trusts_whole_servers_and_has_lists_of_names() {
    let text = r#"{"theme": "x", "mcp": {"excluded": ["c"], "allowed": ["a", "b", "c"]}, "mcpServers": {
      "a": {"httpUrl": "https://h.example/mcp", "timeout": 5000, "trust": true, "includeTools": ["x"], "excludeTools": ["y"]},
      "b": {"url": "https://h.example/sse", "headers": {"K": "$TOKEN-$NOT_SET"}},
      "c": {"command": "c"}, "d": {"command": "d", "env": {"P": "pa$$word"}}}}"#;
    check(
        Client::Gemini,
        "/home/ada/.gemini/settings.json",
        text,
        &[
            "a: http https://h.example/mcp call=5s allow=x deny=y approved=*",
            "b: http|sse https://h.example/sse K: tok-123456789-$NOT_SET",
            "c: stdio c [] off",
            "d: stdio d [] P=pa$$word off",
        ],
    );
}

#[test]
fn goose_writes_yaml_and_has_parts_that_are_no_servers() {
    let text = "\
GOOSE_PROVIDER: anthropic
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  github:
    name: GitHub
    type: stdio
    cmd: npx
    args: [-y, server-github]
    envs: {REGION_CODE: 7}
    env_keys: [GITHUB_TOKEN, NOT_SET]
    enabled: true
    timeout: 300
    available_tools: []
  remote:
    type: streamable_http
    uri: https://h.example/mcp
    headers:
      Authorization: Bearer ${TOKEN}
    enabled: false
  old: {type: sse, uri: 'https://h.example/sse'}
";
    let file = "/home/ada/.config/goose/config.yaml";
    check(
        Client::Goose,
        file,
        text,
        &[
            "github: stdio npx [-y server-github] GITHUB_TOKEN=gh-abcdefghijk REGION_CODE=7 call=300s !env_keys.NOT_SET NOT_SET",
            "remote: http https://h.example/mcp Authorization: Bearer tok-123456789 off",
            "old: sse https://h.example/sse",
        ],
    );
    let imported = import(Client::Goose, file, text);
    assert_eq!(
        notes(&imported),
        ["3:3 'developer': left out: type 'builtin' is a part of goose, not a server"]
    );
    let origin = &imported.servers[0].origin;
    assert_eq!((origin.line, origin.column), (9, 3));
}

#[test]
fn codex_writes_toml_and_names_variables_instead_of_replacing_them() {
    let text = r#"
model = "gpt-5.4"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]
env = { MODE = "${REGION}" }
env_vars = ["REGION", "NOT_SET"]
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["search"]
disabled_tools = ["delete"]

[mcp_servers.figma]
url = "https://h.example/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Key" = "SHORT_KEY", "X-Lost" = "NOT_SET" }
enabled = false
startup_timeout_ms = 1500
"#;
    let file = "/home/ada/.codex/config.toml";
    check(
        Client::Codex,
        file,
        text,
        &[
            "docs: stdio npx [-y docs-mcp] REGION=north-europe MODE=${REGION} start=20s call=45.5s allow=search deny=delete",
            "figma: http|sse https://h.example/mcp X-Region: eu X-Key: abc Authorization: Bearer tok-123456789 off start=1.5s !env_http_headers.X-Lost NOT_SET",
        ],
    );
    let origin = import(Client::Codex, file, text).servers[1].origin.clone();
    assert_eq!((origin.line, origin.column), (14, 14));
}

#[test]
fn crush_replaces_bare_variables_and_its_commands_are_never_run() {
    let text = r#"{"$schema": "https://charm.land/crush.json", "mcp": {
      "a": {"type": "stdio", "command": "node", "args": ["s.js"], "env": {"K": "$TOKEN"}, "timeout": 15, "disabled_tools": ["x"]},
      "b": {"type": "http", "url": "https://h.example/mcp", "headers": {"Authorization": "Bearer $(touch /tmp/steadyhand-was-here)"}},
      "c": {"type": "sse", "url": "https://h.example/$NOT_SET", "disabled": true}}}"#;
    check(
        Client::Crush,
        "/work/app/crush.json",
        text,
        &[
            "a: stdio node [s.js] K=tok-123456789 start=15s deny=x",
            "b: http https://h.example/mcp Authorization: Bearer $(touch /tmp/steadyhand-was-here) !headers.Authorization $(…)",
            "c: sse https://h.example/$NOT_SET off !url $NOT_SET",
        ],
    );
    assert!(!std::path::Path::new("/tmp/steadyhand-was-here").exists());
}

#[test]
fn cline_copilot_and_files_of_nobody_in_particular() {
    let cline = r#"{"mcpServers": {"a": {"command": "x", "disabled": false, "alwaysAllow": ["t"], "timeout": 90}}}"#;
    let file = "/x/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
    check(
        Client::Cline,
        file,
        cline,
        &["a: stdio x [] call=90s approved=t"],
    );
    let copilot = r#"{"mcpServers": {"a": {"type": "local", "command": "x", "args": [], "tools": ["*"], "timeout": 90}}}"#;
    let file = "/home/ada/.copilot/mcp-config.json";
    check(
        Client::Copilot,
        file,
        copilot,
        &["a: stdio x [] call=90ms allow=*"],
    );
    for (text, expected) in [
        (
            r#"{"servers": {"a": {"cmd": "x", "envs": {"K": "v"}}}}"#,
            "a: stdio x [] K=v",
        ),
        (
            r#"{"mcpServers": {"a": {"transport": "streamable-http", "url": "http://h/x"}}}"#,
            "a: http http://h/x",
        ),
        (
            r#"{"mcpServers": {"a": {"type": "streamableHttp", "url": "http://h/x"}}}"#,
            "a: http http://h/x",
        ),
        (
            r#"{"mcp": {"a": {"type": "local", "command": ["x", "y", "z"], "environment": {"K": "v"}, "enabled": false}}}"#,
            "a: stdio x [y z] K=v off",
        ),
        (r#"{"a": {"command": "x"}}"#, "a: stdio x []"),
        (
            r#"{"mcpServers": {"a": {"command": "x", "url": null, "timeout": "30s"}}}"#,
            "a: stdio x [] call=30s",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "timeout": 60000, "autoApprove": ["b"]}}}"#,
            "a: stdio x [] call=60s approved=b",
        ),
    ] {
        check(Client::Other, "/x/some.json", text, &[expected]);
    }
}
