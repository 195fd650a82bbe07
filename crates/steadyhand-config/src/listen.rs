//! Addresses to listen at, as people write them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where Steadyhand listens if nobody says.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7400);

/// Reads an address: `127.0.0.1:7400`, `[::1]:7400`, `localhost:7400`, or only a port, which means this machine alone.
/// Where there is a usual port, it may be left out.
///
/// # Errors
///
/// Says what is wrong with the text.
pub fn listen_address(text: &str, usual_port: Option<u16>) -> Result<SocketAddr, String> {
    const THIS_MACHINE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        let port = text.parse();
        let port = port.map_err(|_| format!("{text} is no port; ports go up to {}", u16::MAX))?;
        return Ok(SocketAddr::new(THIS_MACHINE, port));
    }
    let host = |name: &str| match name.eq_ignore_ascii_case("localhost") {
        true => Some(THIS_MACHINE),
        false => name.trim_matches(['[', ']']).parse().ok(),
    };
    if let (Some(host), Some(port)) = (host(text), usual_port) {
        return Ok(SocketAddr::new(host, port));
    }
    match text.rsplit_once(':') {
        Some(("", port)) => Err(format!(
            "\"{text}\" does not say who may connect; write 127.0.0.1:{port} for this machine, or 0.0.0.0:{port} for every network it is in"
        )),
        Some((name, port)) => match (host(name), port.parse()) {
            (Some(host), Ok(port)) => Ok(SocketAddr::new(host, port)),
            (None, Ok(_)) if name.bytes().any(|byte| byte.is_ascii_alphabetic()) => Err(format!(
                "\"{text}\" has a name; write the address of this machine that it stands for, or localhost"
            )),
            _ => Err(format!("\"{text}\" is no address and port")),
        },
        None => Err(format!("\"{text}\" is no address and port")),
    }
}

/// [`listen_address`] for an option of a command.
pub fn listen_option(text: &str) -> Result<SocketAddr, String> {
    listen_address(text, Some(DEFAULT_LISTEN.port())).map_err(|wrong| {
        format!("{wrong}. Write one such as 127.0.0.1:7400, localhost:7400 or 7400")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_may_write_a_port_a_name_or_an_address() {
        let read = |text: &str| listen_address(text, Some(7400)).map(|it| it.to_string());
        for (text, address) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("21011", "127.0.0.1:21011"),
            ("localhost:21011", "127.0.0.1:21011"),
            ("LocalHost", "127.0.0.1:7400"),
            ("0.0.0.0", "0.0.0.0:7400"),
            ("[::1]:80", "[::1]:80"),
            ("::1", "[::1]:7400"),
            ("0", "127.0.0.1:0"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(address), "{text}");
        }
        for wrong in [
            "",
            ":7400",
            "70000",
            "example.org:80",
            "localhost:http",
            "127.0.0.1:",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
