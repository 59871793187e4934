use http::HeaderValue;

use super::*;

fn site(apps: Apps, origin: Option<&str>) -> Site {
    Site { apps, origin: origin.map(str::to_owned), ..Site::default() }
}

fn named(host: &str) -> HeaderMap {
    HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())])
}

fn asked(site: &Site, host: &str) -> Option<(String, String)> {
    let place = place(site, &Uri::from_static("/"), &named(host), Client::default()).ok()?;
    Some((place.page, place.frames))
}

#[test]
fn frames_have_another_origin_than_the_page_or_there_are_none() {
    let both = |page: &str, frames: &str| Some((page.to_owned(), frames.to_owned()));
    let here = site(Apps::OnThisMachine, None);
    assert_eq!(asked(&here, "localhost:8700"), both("http://localhost:8700", "http://apps.localhost:8700"));
    assert_eq!(asked(&here, "127.0.0.1:8700"), both("http://127.0.0.1:8700", "http://apps.localhost:8700"));
    assert_eq!(asked(&here, "localhost"), both("http://localhost", "http://apps.localhost"));
    for elsewhere in ["turnwright.example.org", "192.168.1.7:8700", "[::1]:8700", "apps.localhost:8700", "localhost.evil.test"]
    {
        assert_eq!(asked(&here, elsewhere), None, "{elsewhere}");
    }
    assert_eq!(asked(&site(Apps::Off, None), "localhost:8700"), None);
    let apart = site(Apps::At("https://apps.test".into()), Some("https://tw.test"));
    assert_eq!(asked(&apart, "inside:8700"), both("https://tw.test", "https://apps.test"));
    assert_eq!(asked(&site(Apps::At("https://apps.test".into()), None), "localhost"), None);
}

#[test]
fn the_name_of_frames_is_told_from_all_others() {
    let is = |site: &Site, host: &str| is_for_frames(site, &Uri::from_static("/"), &named(host));
    let here = site(Apps::OnThisMachine, None);
    let named: Vec<bool> =
        ["apps.localhost:8700", "APPS.localhost", "localhost:8700", "apps.localhost.evil.test", "x@apps.localhost"]
            .into_iter()
            .map(|host| is(&here, host))
            .collect();
    assert_eq!(named, [true, true, false, false, false]);
    assert!(!is(&site(Apps::Off, None), "apps.localhost"));
    let apart = site(Apps::At("https://apps.test:8443".into()), None);
    assert_eq!(["apps.test:8443", "apps.test", "tw.test:8443"].map(|host| is(&apart, host)), [true, false, false]);
    let usual = site(Apps::At("https://apps.test".into()), None);
    assert_eq!(["apps.test:443", "apps.test", "apps.test:8443"].map(|host| is(&usual, host)), [true, true, false]);
}

#[test]
fn a_frame_is_for_our_own_page_alone() {
    let of = |site: &Site, host: &str, page: &str| place_of_frame(site, &Uri::from_static("/"), &named(host), page).is_some();
    let here = site(Apps::OnThisMachine, None);
    assert!(of(&here, "apps.localhost:8700", "http://localhost:8700"));
    assert!(of(&here, "apps.localhost:8700", "http://127.0.0.1:8700"));
    for page in ["http://localhost:8701", "https://localhost:8700", "http://evil.test", "http://apps.localhost:8700", "*", ""] {
        assert!(!of(&here, "apps.localhost:8700", page), "{page}");
    }
    let apart = site(Apps::At("https://apps.test".into()), Some("https://tw.test"));
    assert!(of(&apart, "apps.test", "https://tw.test"));
    assert!(!of(&apart, "apps.test", "https://evil.test"));
}

fn here_place() -> Place {
    Place { page: "https://tw.example.org".into(), frames: "https://apps.example.net:8443".into() }
}

#[test]
fn only_origins_of_the_public_network_are_let_in_and_never_our_own() {
    let good = ["https://a.test", "HTTPS://A.test/", "wss://live.a.test:8443", "https://*.cdn.test"];
    let bad = [
        "http://a.test",
        "https://a.test/path",
        "https://a.test;script-src *",
        "https://a.test 'unsafe-eval'",
        "'unsafe-eval'",
        "*",
        "https:",
        "https://*",
        "https://*.org",
        "https://a.*.test",
        "data:",
        "blob:",
        "https://localhost:8700",
        "https://apps.localhost",
        "https://127.0.0.1",
        "https://[::1]",
        "https://u@a.test",
        "https://a.test:99999",
        "https://a.test:+1",
        "https://a.test,https://b.test",
        "https://tw.example.org",
        "https://tw.example.org:9000",
        "https://*.example.org",
        "wss://*.example.net",
        "",
    ];
    let list: Vec<String> = good.iter().chain(&bad).map(ToString::to_string).collect();
    let (allowed, refused) = sifted(&Domains { connect: list, ..Domains::default() }, &here_place());
    assert_eq!(allowed.connect, ["https://a.test", "wss://live.a.test:8443", "https://*.cdn.test"]);
    assert_eq!(refused, bad);
}

#[test]
fn what_nobody_declared_is_denied_and_what_was_is_where_it_belongs() {
    let place = Place { page: "http://localhost:8700".into(), frames: "http://apps.localhost:8700".into() };
    assert_eq!(
        policy(&Domains::default(), &place),
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; media-src data:; font-src data:; \
         connect-src 'none'; frame-src 'none'; base-uri 'none'; object-src 'none'; form-action 'none'; \
         frame-ancestors http://localhost:8700"
    );
    let one = |name: &str| vec![format!("https://{name}.test")];
    let all = Domains { connect: one("c"), resource: one("r"), frame: one("f"), base_uri: one("b") };
    assert_eq!(
        policy(&all, &place),
        "default-src 'none'; script-src 'unsafe-inline' https://r.test; style-src 'unsafe-inline' https://r.test; \
         img-src data: https://r.test; media-src data: https://r.test; font-src data: https://r.test; \
         connect-src https://c.test; frame-src https://f.test; base-uri https://b.test; object-src 'none'; form-action 'none'; \
         frame-ancestors http://localhost:8700"
    );
}
