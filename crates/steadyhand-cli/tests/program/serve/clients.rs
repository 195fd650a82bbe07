//! Clients that common generators make from `/openapi.json`: they compile, their types hold, and they make calls.

use std::path::{Path, PathBuf};

use tokio::process::Command;
use tokio::time::timeout;

use super::{Served, TOOLS};
use crate::support::PATIENCE;

const TOKEN: &str = "t0p-secret-token-of-this-test";

/// A server that asks for a token, and its document in a file of its folder.
struct Described {
    served: Served,
}

impl Described {
    async fn start() -> Described {
        let served = Served::with_config(&format!("[server]\ntoken = \"{TOKEN}\"\n{TOOLS}")).await;
        let shown = format!("Bearer {TOKEN}");
        let headers = [("authorization", shown.as_str())];
        let document = served.send("GET", "/openapi.json", &headers, "").await;
        assert_eq!(document.status, 200, "{}", document.text);
        served.workplace.write("openapi.json", &document.text);
        Described { served }
    }

    fn folder(&self) -> &Path {
        self.served.workplace.path()
    }

    /// Puts a file of ours beside the document.
    fn place(&self, name: &str, text: &str) {
        self.served.workplace.write(name, text);
    }

    fn address(&self) -> String {
        format!("http://{}", self.served.address)
    }

    /// Runs a program in the folder of the document; what it printed, once it has ended well.
    async fn run(&self, program: &Path, arguments: &[&str]) -> String {
        let folders = [
            peer("conformance/bin"),
            peer("openapi-readers-py/bin"),
            peer("openapi-readers-js/node_modules/.bin"),
        ];
        let folders = folders.map(|folder| folder.display().to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder())
            .env("HOME", self.folder())
            .env("PATH", format!("{}:{path}", folders.join(":")))
            .env("REDOCLY_TELEMETRY", "off")
            .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
            .env("NO_COLOR", "1")
            .kill_on_drop(true);
        let ended = timeout(PATIENCE * 4, command.output()).await;
        let ended = ended.expect("it ends in time").expect("it starts");
        let said = [&ended.stdout, &ended.stderr].map(|said| String::from_utf8_lossy(said));
        let said = said.concat();
        assert!(ended.status.success(), "{program:?} {arguments:?}:\n{said}");
        said
    }

    /// Compiles `client.ts` with all its types checked, and lets it call the server.
    async fn run_typescript(&self, client: &str) -> String {
        self.place("client.ts", client);
        self.place("tsconfig.json", include_str!("clients/tsconfig.json"));
        let packages = peer("openapi-readers-js/node_modules");
        std::os::unix::fs::symlink(packages, self.folder().join("node_modules")).expect("a link");
        self.run(&tool("tsc"), &["--project", "."]).await;
        let arguments = ["js/client.js", &self.address(), TOKEN];
        self.run(&peer("conformance/bin/node"), &arguments).await
    }
}

/// Something that `./test` installs below `target/peers`.
fn peer(path: &str) -> PathBuf {
    let home = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers"));
    let found = home.join(path);
    assert!(
        found.exists(),
        "target/peers/{path} is not installed: run ./test, or: . scripts/peers.sh && install_peers target/peers"
    );
    found
}

/// The arguments of a command as `docs/rest.md` has it.
fn of_the_page(command: &str) -> Vec<&'static str> {
    let mut lines = include_str!("../../../../../docs/rest.md").lines();
    let found = lines.find_map(|line| line.strip_prefix("$ ")?.strip_prefix(command));
    let found = found.unwrap_or_else(|| panic!("docs/rest.md has no line with {command}"));
    found.split_whitespace().collect()
}

fn tool(name: &str) -> PathBuf {
    peer(&format!("openapi-readers-js/node_modules/.bin/{name}"))
}

#[tokio::test]
async fn t05_the_document_passes_openapi_spec_validator_and_redocly() {
    let described = Described::start().await;
    let validator = peer("openapi-readers-py/bin/openapi-spec-validator");
    let said = described.run(&validator, &["openapi.json"]).await;
    assert!(said.contains("openapi.json: OK"), "{said}");
    described.place("redocly.yaml", include_str!("clients/redocly.yaml"));
    let lint = ["lint", "openapi.json", "--config", "redocly.yaml"];
    let said = described.run(&tool("redocly"), &lint).await;
    assert!(said.contains("Your API description is valid"), "{said}");
}

#[tokio::test]
async fn t05_a_client_of_openapi_typescript_type_checks_and_makes_calls() {
    let described = Described::start().await;
    let arguments = of_the_page("npx openapi-typescript ");
    described.run(&tool("openapi-typescript"), &arguments).await;
    let client = include_str!("clients/openapi_fetch.ts");
    let said = described.run_typescript(client).await;
    assert!(said.contains("all good"), "{said}");
}

#[tokio::test]
async fn t05_a_client_of_hey_api_type_checks_and_makes_calls() {
    let described = Described::start().await;
    let arguments = of_the_page("npx openapi-ts ");
    described.run(&tool("openapi-ts"), &arguments).await;
    let client = include_str!("clients/hey_api.ts");
    let said = described.run_typescript(client).await;
    assert!(said.contains("all good"), "{said}");
}

#[tokio::test]
async fn t05_a_client_of_openapi_python_client_type_checks_and_makes_calls() {
    let described = Described::start().await;
    let generator = peer("openapi-readers-py/bin/openapi-python-client");
    let arguments = of_the_page("openapi-python-client ");
    let said = described.run(&generator, &arguments).await;
    assert!(!said.contains("WARNING"), "a piece is missing: {said}");
    described.place("client.py", include_str!("clients/python_client.py"));
    described.place("mypy.ini", include_str!("clients/mypy.ini"));
    let mypy = peer("openapi-readers-py/bin/mypy");
    described.run(&mypy, &["generated", "client.py"]).await;
    let python = peer("openapi-readers-py/bin/python");
    let arguments = ["client.py", &described.address(), TOKEN];
    let said = described.run(&python, &arguments).await;
    assert!(said.contains("all good"), "{said}");
}
