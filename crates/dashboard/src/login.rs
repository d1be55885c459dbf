//! `/login` and `/logout`.

use axum::extract::{Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use maud::{Markup, html};

use super::failure::PageFailure;
use super::form::{FormFields, SessionForm, check_same_origin};
use super::links;
use super::{layout, session};
use farescan_core::app::AppState;
use farescan_core::app::extract::{SEARCH_BODY, read_bytes};
use farescan_core::contract::{KeyFormatError, MAX_KEY_BYTES, parse_key};
use farescan_core::search::CallerKey;

const PATH: &str = links::LOGIN;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, get(show).post(submit))
        .route(links::LOGOUT, post(sign_out))
}

async fn show(
    State(app): State<AppState>,
    query: FormFields,
    headers: HeaderMap,
) -> Result<Response, PageFailure> {
    let next = own_path(query.text("next"));
    if session::is_signed_in(&headers, &app).await? {
        return Ok(redirect(next).into_response());
    }
    Ok(login_page(&app, StatusCode::OK, next, None))
}

/// The key of the sandbox, which the login page offers.
#[derive(Debug, Clone, Copy)]
pub(super) struct DemoKey(pub(super) &'static str);

async fn submit(
    State(app): State<AppState>,
    Extension(DemoKey(demo_key)): Extension<DemoKey>,
    request: Request,
) -> Result<Response, PageFailure> {
    let (parts, body) = request.into_parts();
    check_same_origin(&parts.headers)?;
    let fields = FormFields::parse(&read_bytes(body, SEARCH_BODY).await?);
    let next = own_path(fields.text("next"));
    let use_sandbox = app.is_sandbox() && fields.text("sandbox").is_some();
    let given = if use_sandbox {
        demo_key
    } else {
        fields.text("key").unwrap_or_default()
    };
    let key = match parse_key(given.as_bytes()) {
        Ok(key) => CallerKey::new(key),
        Err(wrong) => {
            let message = format_error(wrong);
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return Ok(login_page(&app, status, next, Some(&message)));
        }
    };
    if let Err(refused) = app.check_key(&key).await {
        let message = refused.message();
        return Ok(login_page(&app, refused.status(), next, Some(message)));
    }
    let cookie = session::sign_in(&parts.headers, &app, key).await?;
    Ok(([(SET_COOKIE, cookie)], redirect(next)).into_response())
}

/// Ends every session of the caller: a cookie that was copied must not outlive the person's leave.
async fn sign_out(form: SessionForm) -> Result<Response, PageFailure> {
    form.session.end_all().await?;
    let cookies = session::sign_out().map(|cookie| (SET_COOKIE, cookie));
    Ok((AppendHeaders(cookies), redirect(PATH)).into_response())
}

fn redirect(path: &str) -> impl IntoResponse + use<> {
    let target = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static(links::OVERVIEW));
    (StatusCode::SEE_OTHER, [(LOCATION, target)])
}

/// A path of this service to continue at; never another host, which `//` and `/\` would name.
fn own_path(next: Option<&str>) -> &str {
    next.filter(|path| {
        path.starts_with('/')
            && !path.starts_with("//")
            && !path.contains('\\')
            && !path.starts_with(PATH)
            && path.bytes().all(|byte| byte.is_ascii_graphic())
    })
    .unwrap_or(links::OVERVIEW)
}

/// Never shows the key, except for a placeholder of the documentation.
fn format_error(wrong: KeyFormatError) -> String {
    match wrong {
        KeyFormatError::Malformed => format!(
            "This is not a key: expected 1 to {MAX_KEY_BYTES} visible ASCII characters without white space."
        ),
        KeyFormatError::Placeholder(text) => {
            format!("`{text}` is a placeholder: enter your own marketplace key.")
        }
    }
}

fn login_page(app: &AppState, status: StatusCode, next: &str, error: Option<&str>) -> Response {
    layout::bare_page(
        status,
        "Sign in",
        html! {
            h1 { "Sign in" }
            @if app.is_sandbox() { (sandbox_form(next)) }
            form method="post" action=(PATH) class="stack" {
                input type="hidden" name="next" value=(next);
                label for="key" { "Marketplace key" }
                input id="key" name="key" type="password" autocomplete="current-password" required
                    autofocus[!app.is_sandbox()] maxlength=(MAX_KEY_BYTES) spellcheck="false" autocapitalize="none"
                    aria-invalid=[error.map(|_| "true")] aria-describedby="key-error key-help";
                @if let Some(error) = error {
                    p id="key-error" class="error" role="alert" { (error) }
                }
                p id="key-help" class="hint" {
                    "The key stays in this browser, sealed in a cookie for 12 hours. A key that this service does not know yet is "
                    "checked with the marketplace: one request of your plan."
                }
                button class="primary" type="submit" { "Sign in" }
            }
        },
    )
}

fn sandbox_form(next: &str) -> Markup {
    html! {
        form method="post" action=(PATH) class="stack" {
            input type="hidden" name="next" value=(next);
            input type="hidden" name="sandbox" value="true";
            button class="primary" type="submit" autofocus { "Continue with the sandbox key" }
            p class="hint" { "This service uses its sandbox: prices are invented and nothing is billed." }
        }
        p class="or" { "or" }
    }
}
