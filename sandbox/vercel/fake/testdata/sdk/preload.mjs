// Leads the official command line to the double whose address is in DOUBLE.
const real = globalThis.fetch;
const base = process.env.DOUBLE;
globalThis.fetch = (url, init) =>
  real(String(url?.url ?? url).replace("https://vercel.com/api", base + "/api").replace(/^https:\/\/127\.0\.0\.1\/health$/, base + "/health"), init);
