// Call the API of Stripe with stripe-node: `node stripe_node.mjs BASE_URL PACKAGE (none|VERSION)`.
const [base, name, version] = process.argv.slice(2);
const { default: Stripe } = await import(name);
const { hostname, port } = new URL(base);
const stripe = new Stripe("sk_test_1", {
  host: hostname,
  port,
  protocol: "http",
  maxNetworkRetries: 0,
  telemetry: false,
  ...(version === "none" ? {} : { apiVersion: version }),
});
const newer = version === "2026-08-26.dahlia";
const form = (older, changed) => (newer ? changed : older);
const plain = async (call) => {
  const found = await call;
  return { body: found, version: found.lastResponse.headers["stripe-version"] };
};
const every = async (list) => {
  const names = [];
  for await (const one of list) names.push(one.id);
  return names;
};
const { customers, promotionCodes, paymentIntents, subscriptions, invoices, invoiceItems } = stripe;
const pay = (more) => plain(paymentIntents.create({ amount: 500, currency: "eur", ...more }));
const charge = (source) => stripe.charges.create({ amount: 5, currency: "eur", source });
const coupon = form({ coupon: "c1" }, { discounts: [{ coupon: "c1" }] });
const code = (coupon) => form({ coupon }, { promotion: { type: "coupon", coupon } });
const subscription = { customer: "cus_1", items: [{ price: "price_1" }], metadata: { order: "7" } };
const secure = (word) =>
  plain(
    stripe.setupIntents.create({
      customer: "cus_1",
      payment_method_options: { card: { request_three_d_secure: word } },
    }),
  );
const process_ = (consent, word) =>
  plain(
    stripe.terminal.readers.processSetupIntent("tmr_1", {
      setup_intent: "seti_1",
      ...form({ customer_consent_collected: consent }, { allow_redisplay: word }),
    }),
  );
const twice = async (second) => {
  const key = { idempotencyKey: `key-${second}` };
  const first = await customers.create({ name: "Once" }, key);
  const again = await customers.create({ name: second }, key);
  return [first.id === again.id, again.lastResponse.headers["original-request"]];
};

const calls = {
  "create": () =>
    plain(
      customers.create({
        name: "Ann & Söhne = 100%",
        metadata: { a: "1", "b c": "x[y]", empty: "" },
        address: { city: "Köln", line1: "1+1" },
        preferred_locales: ["de", "en"],
        expand: ["default_source"],
      }),
    ),
  "retrieve, expanded": () => plain(customers.retrieve("cus_1", { expand: ["subscriptions"] })),
  "update": () => plain(customers.update("cus_1", { metadata: { order: "007" }, balance: -5 })),
  "list": () => plain(customers.list({ limit: 2 })),
  "list in pages": () => every(customers.list({ limit: 2 })),
  "search": () => plain(customers.search({ query: "name:'N3'" })),
  "delete": () => plain(customers.del("cus_5")),
  "delete, missing": () => plain(customers.del("cus_99")),
  "idempotent": () => twice("Once"),
  "idempotency error": () => twice("Other"),
  "retried": () => plain(customers.create({ name: "Busy" }, { maxNetworkRetries: 1 })),
  "missing": () => plain(customers.retrieve("cus_99")),
  "wrong key": () => plain(customers.retrieve("cus_1", {}, { apiKey: "sk_test_2" })),
  "card error": () => charge("tok_declined"),
  "rate limit": () => charge("tok_slow_down"),
  "permission": () => charge("tok_forbidden"),
  "create a code": () => plain(promotionCodes.create({ code: "SAVE", metadata: { k: "v" }, ...code("c1") })),
  "create a code, invalid": () => plain(promotionCodes.create({ code: "SAVE", ...code("c9") })),
  "create a code, no coupon": () => plain(promotionCodes.create({ code: "SAVE" })),
  "retrieve a code": () => plain(promotionCodes.retrieve("promo_1")),
  "retrieve a code, expanded": () => plain(promotionCodes.retrieve("promo_1", { expand: ["customer"] })),
  "list codes": () => plain(promotionCodes.list({ limit: 5, active: true })),
  "pay": () => pay({}),
  "pay by types": () => pay({ payment_method_types: ["card", "sepa_debit"] }),
  "pay automatically": () => pay({ automatic_payment_methods: { enabled: true } }),
  "pay by hand": () => pay({ capture_method: "manual" }),
  "secure": () => secure(newer ? "challenge" : "challenge_only"),
  "secure, wrong word": () => secure("never"),
  "subscribe": () => plain(subscriptions.create({ ...subscription, ...form({}, { billing_mode: { type: "classic" } }) })),
  "subscribe with a coupon": () => plain(subscriptions.create({ ...subscription, ...coupon })),
  "update a subscription": () => plain(subscriptions.update("sub_1", coupon)),
  "retrieve a subscription": () => plain(subscriptions.retrieve("sub_1")),
  "retrieve a subscription, expanded": () => plain(subscriptions.retrieve("sub_1", { expand: ["latest_invoice"] })),
  "list subscriptions": () => plain(subscriptions.list({ limit: 3 })),
  "schedule": () => plain(stripe.subscriptionSchedules.create({ customer: "cus_1", phases: [coupon] })),
  "create an invoice": () =>
    plain(
      invoices.create({
        customer: "cus_1",
        [form("rendering_options", "rendering")]: { amount_tax_display: "include_inclusive_tax" },
      }),
    ),
  "retrieve an invoice": () => plain(invoices.retrieve("in_1")),
  "retrieve an invoice without a subscription": () => plain(invoices.retrieve("in_3")),
  "list invoices": () => every(invoices.list({ limit: 2 })),
  "list invoices, whole page": () => plain(invoices.list({ limit: 2, starting_after: "in_1" })),
  "preview": () =>
    plain(
      invoices.retrieveUpcoming
        ? invoices.retrieveUpcoming({ customer: "cus_1" })
        : newer
          ? invoices.createPreview({ customer: "cus_1" })
          : stripe.rawRequest("GET", "/v1/invoices/upcoming?customer=cus_1"),
    ),
  "create an item": () =>
    plain(
      invoiceItems.create({
        customer: "cus_1",
        metadata: { a: "b" },
        ...form({ price: "price_1" }, { pricing: { price: "price_1" } }),
      }),
    ),
  "create an item by amount": () =>
    plain(invoiceItems.create({ customer: "cus_1", ...form({ unit_amount: 1250 }, { unit_amount_decimal: "1250" }) })),
  "credit": () =>
    plain(
      stripe.creditNotes.create({
        invoice: "in_1",
        amount: 500,
        ...form({ refund: "re_1" }, { refunds: [{ refund: "re_1" }] }),
      }),
    ),
  "retrieve a credit": () => plain(stripe.creditNotes.retrieve("cn_1")),
  "retrieve a session": () => plain(stripe.checkout.sessions.retrieve("cs_1")),
  "retrieve a session without an address": () => plain(stripe.checkout.sessions.retrieve("cs_2")),
  "retrieve a purchase": () => plain(stripe.issuing.transactions.retrieve("ipi_1")),
  "process with consent": () => process_(true, "always"),
  "process without consent": () => process_(false, "limited"),
  "configure the portal": () =>
    plain(
      stripe.billingPortal.configurations.update("bpc_1", {
        features: { invoice_history: { enabled: true }, ...form({ subscription_pause: { enabled: false } }, {}) },
      }),
    ),
  "list events": () => plain(stripe.events.list({ limit: 3 })),
};

const results = {};
for (const [title, call] of Object.entries(calls)) {
  try {
    results[title] = await call();
  } catch (error) {
    const { type, rawType, code, param, statusCode, message } = error;
    results[title] = { raised: type ?? error.name, rawType, code, param, statusCode, message };
  }
}
// Idle connections of the client would keep the process alive.
process.stdout.write(JSON.stringify(results), () => process.exit());
