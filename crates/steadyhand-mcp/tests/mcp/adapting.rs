//! Settings that change while a server runs.

use serde_json::json;
use steadyhand::Tool;
use steadyhand_mcp::Server;

use crate::support::{Folder, Stage, set};

fn names(server: &Server) -> Vec<String> {
    let tools = server.tools();
    tools.iter().map(|tool| tool.name().to_owned()).collect()
}

#[tokio::test]
async fn v05_another_choice_of_tools_restarts_nothing_and_keeps_the_others_as_they_are() {
    let folder = Folder::new();
    let settings = folder.hostile(&["plain_text"]);
    let stage = Stage::with(folder, settings.clone()).await;
    let (pid, before) = (stage.server.state().pid, names(&stage.server));
    assert!(
        before.iter().any(|name| name.ends_with("trouble")),
        "{before:?}"
    );
    let echo = |server: &Server| -> Tool {
        let mut tools = server.tools().into_iter();
        tools
            .find(|tool| tool.name().ends_with("echo"))
            .expect("echo")
    };
    let kept = echo(&stage.server);

    let mut fewer = settings.clone();
    fewer.tools.deny = vec!["trouble".to_owned()];
    assert!(stage.server.adapt(fewer));
    let after = names(&stage.server);
    assert!(
        !after.iter().any(|name| name.ends_with("trouble")),
        "{after:?}"
    );
    assert!(echo(&stage.server).is_same_as(&kept));

    let mut renamed = settings.clone();
    renamed.rename = [("echo".to_owned(), "say_again".to_owned())].into();
    renamed.aliases = [("echo".to_owned(), "repeat".to_owned())].into();
    assert!(stage.server.adapt(renamed));
    assert!(names(&stage.server).contains(&"say_again".to_owned()));
    stage.take_tools();
    let answer = stage.text("repeat", json!({"message": "hi"})).await;
    assert!(answer.contains("hi"), "{answer}");
    assert_eq!(stage.server.state().pid, pid);

    let mut other = settings;
    set(&mut other, "ANOTHER", "variable");
    assert!(
        !stage.server.adapt(other),
        "another environment is another process"
    );
    assert_eq!(stage.server.state().pid, pid);
    stage.over().await;
}
