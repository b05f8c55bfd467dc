// Creates a container in Azurite.
//   node create_container.mjs ENDPOINT ACCOUNT KEY CONTAINER
import { createHmac } from "node:crypto";

const [endpoint, account, key, container] = process.argv.slice(2);
const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-12-02" };
const text = [
  "PUT" + "\n".repeat(11),
  ...Object.entries(headers).map(([name, value]) => `${name}:${value}`),
  // The path of the endpoint begins with the name of the account, too.
  `/${account}/${account}/${container}`,
  "restype:container",
].join("\n");
const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
const response = await fetch(`${endpoint}/${container}?restype=container`, {
  method: "PUT",
  headers: { ...headers, Authorization: `SharedKey ${account}:${signature}` },
});
if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
