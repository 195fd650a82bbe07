//! The floor: a reverse proxy on hyper with pooled connections that passes everything on and looks at nothing.

use std::convert::Infallible;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};

pub fn run(address: &str, upstream: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let upstream: &'static str = upstream.to_owned().leak();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await.expect("the address is free");
        let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build_http();
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            let client = client.clone();
            tokio::spawn(async move {
                let service = service_fn(move |mut request: Request<Incoming>| {
                    let client = client.clone();
                    async move {
                        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
                        *request.uri_mut() = format!("http://{upstream}{path}").parse::<Uri>().expect("a URI");
                        let answer = client.request(request).await;
                        Ok::<_, Infallible>(match answer {
                            Ok(response) => response.map(http_body_util::Either::Left),
                            Err(_) => hyper::Response::builder()
                                .status(502)
                                .body(http_body_util::Either::Right(http_body_util::Empty::new()))
                                .expect("a response"),
                        })
                    }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
}
