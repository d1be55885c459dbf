//! The dashboard from outside: what a browser gets and sends. Each test is a browser without
//! JavaScript.

mod activity;
mod alerts;
mod ask;
mod channels;
mod compare;
mod errors;
mod find;
mod items;
mod lists;
mod monitor_edit;
mod monitors;
mod overview;
mod pages;
mod prices;
mod scans;
mod sessions;
mod suggestions;
mod usage;
mod watch;

use serde_json::{Value, json};

use crate::support::app::{HttpResponse, KEY, TestApp};
use crate::support::{SearchOutcome, TestService, fares};

/// A browser that is signed in.
pub struct Browser<'a> {
    app: &'a TestApp,
    /// The header `Cookie`.
    pub cookie: String,
}

/// A form of a page: its path and its fields.
#[derive(Debug, Clone)]
pub struct Form {
    pub action: String,
    pub fields: Vec<(String, String)>,
}

impl<'a> Browser<'a> {
    /// Signs in at the login page.
    pub async fn sign_in(app: &'a TestApp, key: &str) -> Self {
        let response = sign_in(app, key).await.expect(303);
        Self {
            app,
            cookie: session_cookie(&response),
        }
    }

    pub async fn request(&self, method: &str, path: &str, body: Option<String>) -> HttpResponse {
        let mut request = self
            .app
            .request(method, path)
            .header("accept", "text/html")
            .header("cookie", &self.cookie);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/x-www-form-urlencoded")
                .header("origin", self.app.url())
                .body(body);
        }
        self.app.send(request).await
    }

    pub async fn get(&self, path: &str) -> HttpResponse {
        self.request("GET", path, None).await
    }

    /// The source of a page that is there.
    pub async fn page(&self, path: &str) -> String {
        self.get(path).await.expect(200).text()
    }

    /// Sends a form.
    pub async fn send(&self, form: &Form) -> HttpResponse {
        self.request("POST", &form.action, Some(encoded(&form.fields)))
            .await
    }

    /// Sends the form of a page with this path.
    pub async fn press(&self, page: &str, action: &str) -> HttpResponse {
        self.send(&form(&self.page(page).await, action)).await
    }
}

pub fn encoded(fields: &[(String, String)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}

/// Sends the login form.
pub async fn sign_in(app: &TestApp, key: &str) -> HttpResponse {
    let request = app
        .request("POST", "/login")
        .header("origin", app.url())
        .body(encoded(&[("key".to_owned(), key.to_owned())]));
    app.send(request).await
}

/// The cookie that a login set, as the browser sends it back.
pub fn session_cookie(response: &HttpResponse) -> String {
    let set = response.header("set-cookie");
    set.split(';').next().unwrap().to_owned()
}

/// The form of a page with this action, with the values of its inputs.
#[track_caller]
pub fn form(page: &str, action: &str) -> Form {
    let found = forms(page, action).into_iter().next();
    found.unwrap_or_else(|| panic!("no form {action} in {page}"))
}

/// Sets a field.
pub fn set(form: &mut Form, name: &str, value: &str) {
    form.fields.retain(|(known, _)| known != name);
    form.fields.push((name.to_owned(), value.to_owned()));
}

/// All forms of a page with this action.
pub fn forms(page: &str, action: &str) -> Vec<Form> {
    let begin = format!("action=\"{action}\"");
    let texts = page.split(&begin).skip(1);
    texts.map(|text| read_form(action, text)).collect()
}

fn read_form(action: &str, text: &str) -> Form {
    let text = &text[..text.find("</form>").unwrap()];
    let fields = text.split("<input ").skip(1).filter_map(|input| {
        let input = &input[..input.find('>')?];
        let is_box = input.contains("type=\"checkbox\"");
        (!is_box || input.contains(" checked")).then_some(())?;
        Some((attribute(input, "name")?, attribute(input, "value")?))
    });
    Form {
        action: action.to_owned(),
        fields: fields.collect(),
    }
}

impl Form {
    /// The form after a person changed a field; an empty text clears it.
    pub fn with(mut self, name: &str, text: &str) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self.fields.push((name.to_owned(), text.to_owned()));
        self
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let plain = value.replace("&quot;", "\"").replace("&lt;", "<");
    Some(plain.replace("&gt;", ">").replace("&amp;", "&"))
}

/// A service with one ended scan of four dates: a price, nothing, degraded and another price.
pub async fn service_with_scan() -> (TestService, String) {
    let service = TestService::start().await;
    let id = service
        .submit_and_complete(&fares(4), |position| match position {
            0 => SearchOutcome::Ok(300),
            1 => SearchOutcome::Empty,
            2 => SearchOutcome::Degraded("blocked_page"),
            _ => SearchOutcome::Ok(200),
        })
        .await;
    (service, id)
}

/// The number of requests that the marketplace got.
pub fn calls(service: &TestService) -> usize {
    service.upstream.count()
}

/// The preview of a fare scan, with a key as its redirect adds one.
pub fn fare_fields(days: &str) -> String {
    format!(
        "/scans/new?endpoint=flights/oneway&from_airport=TLV&to_airport=LHR&departure_date.from=2030-01-01\
         &departure_date.to={days}&preview=true&once=01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5b"
    )
}

/// The path of the page that a response redirects to.
#[track_caller]
pub fn redirect(response: HttpResponse) -> String {
    response.expect(303).header("location").to_owned()
}

pub fn key() -> &'static str {
    KEY
}

/// The ids of the stored scans.
pub async fn scan_ids(service: &TestService) -> Vec<Value> {
    let page = service.get("/v1/scans").await;
    let rows = page["data"].as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| json!(row["id"])).collect()
}
