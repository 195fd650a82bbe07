//! The provider, the floor and the program, each a process of its own that ends with this one.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that listens, until this goes.
pub struct System {
    pub name: &'static str,
    pub address: SocketAddr,
    /// What the path begins with.
    pub prefix: &'static str,
    process: Child,
}

impl System {
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    fn start(name: &'static str, prefix: &'static str, address: SocketAddr, mut command: Command) -> System {
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "{name} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        System { name, address, prefix, process }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The provider first, then what stands before it.
pub fn all(steadyhand: &str) -> Vec<System> {
    let own = std::env::current_exe().expect("this program");
    let upstream = free();
    let mut provider = Command::new(&own);
    provider.args(["upstream", &upstream.to_string()]);
    let mut systems = vec![System::start("direct", "", upstream, provider)];
    let address = free();
    let mut bare = Command::new(&own);
    bare.args(["bare", &address.to_string(), &upstream.to_string()]);
    systems.push(System::start("bare hyper proxy", "", address, bare));
    let folder = std::env::temp_dir().join(format!("steadyhand-proxy-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let config = format!("[server]\nlimits = {{ connections = 4000 }}\n[proxy.anthropic]\nupstream = \"http://{upstream}\"\n");
    std::fs::write(folder.join("steadyhand.toml"), config).expect("a file");
    let address = free();
    let mut ours = Command::new(steadyhand);
    ours.args(["serve", "--listen", &address.to_string()]).current_dir(&folder).env("HOME", &folder);
    systems.push(System::start("Steadyhand", "/proxy/anthropic", address, ours));
    systems
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound")
}
