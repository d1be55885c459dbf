// Starts Scalar on the description of this service. Everything that would contact another host is off; the page's
// Content-Security-Policy would refuse it too.
"use strict";

Scalar.createApiReference("#reference", {
  url: "/openapi.json",
  agent: { disabled: true },
  authentication: { preferredSecurityScheme: "x-api-key" },
  baseServerURL: location.origin,
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  documentDownloadType: "none",
  hideClientButton: true,
  mcp: { disabled: true },
  persistAuth: false,
  showDeveloperTools: "never",
  telemetry: false,
  withDefaultFonts: false,
});

// Faults of Scalar's markup that hide controls from screen readers (decision 35): repaired as elements appear.
const repairs = [
  ["[role=combobox]:not([aria-expanded])", (field) => field.setAttribute("aria-expanded", "false")],
  ["button[role=none]", (button) => button.removeAttribute("role")],
  [".cm-content[role=textbox]:not([aria-label])", (text) => {
    text.setAttribute("aria-label", text.isContentEditable ? "Body of the request" : "Code");
  }],
  [".cm-scroller[tabindex='-1']", (area) => area.setAttribute("tabindex", "0")],
  ["[aria-controls]", (element) => {
    if (!document.getElementById(element.getAttribute("aria-controls"))) {
      element.removeAttribute("aria-controls");
    }
  }],
  ["section[aria-label^=Notifications]", (section, number) => {
    if (number > 0) {
      section.setAttribute("aria-label", `Messages ${number}`);
    }
  }],
  ["input[placeholder^=QUxMIFl]", (input) => input.setAttribute("placeholder", "your marketplace key")],
  ["[data-placeholder^=QUxMIFl]", (input) => input.setAttribute("data-placeholder", "your marketplace key")],
];

function repair() {
  for (const [selector, mend] of repairs) {
    document.querySelectorAll(selector).forEach(mend);
  }
  // What is behind a dialog is out of reach while it is open.
  const dialog = document.querySelector("[role=dialog]");
  const reference = document.querySelector("main.references-rendered");
  if (reference && !reference.contains(dialog)) {
    reference.inert = Boolean(dialog);
  }
}

let isPlanned = false;
new MutationObserver(() => {
  if (!isPlanned) {
    isPlanned = true;
    requestAnimationFrame(() => {
      isPlanned = false;
      repair();
    });
  }
}).observe(document.body, { childList: true, subtree: true });
