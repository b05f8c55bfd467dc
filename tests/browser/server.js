// Starts servers of nuthatch, and a client of Redis that sends them requests.

import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { createInterface } from "node:readline";

const PROGRAM = process.env.NUTHATCH;
if (!PROGRAM) throw new Error("NUTHATCH: expected the path of the program; scripts/page sets it");

/** A running server. */
export class Server {
  /** Starts the program with these arguments. Returns when the server has printed its addresses. */
  static async start(args) {
    const server = new Server();
    server.process = spawn(PROGRAM, args, { stdio: ["ignore", "pipe", "pipe"] });
    server.errors = "";
    server.process.stderr.on("data", (data) => { server.errors += data; });
    const exited = once(server.process, "exit").then(() => {
      throw new Error(`${args.join(" ")}: ended early: ${server.errors}`);
    });
    exited.catch(() => {});
    await Promise.race([server.readAddresses(), exited]);
    return server;
  }

  async readAddresses() {
    for await (const line of createInterface({ input: this.process.stdout })) {
      const client = /^listening at (127\.0\.0\.1:\d+) for clients of Redis$/.exec(line);
      if (client) this.redis = client[1];
      const admin = /^metrics at (http:\/\/[^/]+)\/metrics$/.exec(line);
      if (admin) {
        this.page = admin[1];
        return;
      }
    }
    throw new Error(`no admin address: ${this.errors}`);
  }

  get port() {
    return Number(new URL(this.page).port);
  }

  async stop() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const exited = once(this.process, "exit");
    this.process.kill("SIGTERM");
    await exited;
  }
}

/** A client of Redis that sends pipelines and reads as many replies. */
export class Redis {
  static async connect(address) {
    const redis = new Redis();
    const [host, port] = address.split(":");
    redis.socket = net.connect({ host, port: Number(port) });
    await once(redis.socket, "connect");
    redis.socket.on("error", () => {});
    return redis;
  }

  /** Sends requests, each a list of words, and a last one whose reply ends the replies. */
  async send(requests) {
    this.number = (this.number ?? 0) + 1;
    const end = `end-of-pipeline-${this.number}`;
    const encode = (words) => `*${words.length}\r\n${words.map((word) =>
      `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
    this.socket.write([...requests, ["ECHO", end]].map(encode).join(""));
    let tail = "";
    while (!tail.endsWith(`${end}\r\n`)) {
      const [data] = await once(this.socket, "data");
      tail = (tail + data.toString("latin1")).slice(-64);
    }
  }

  close() {
    this.socket.destroy();
  }
}

/** Returns requests of several commands, whose keys are hot to different degrees. */
export function mixedRequests(count, seed = 1) {
  let random = seed;
  const next = () => {
    random = (random * 48271) % 2147483647;
    return random / 2147483647;
  };
  return Array.from({ length: count }, () => {
    const part = next();
    const isHot = next() < 0.3;
    const item = Math.floor(next() ** 2 * (part < 0.7 ? 12_000 : 9000));
    const key = isHot ? `user:${Math.floor(2.99 * next() ** 2)}:profile` : `item:${item}`;
    if (part < 0.7) return ["GET", key];
    if (part < 0.72) return ["SET", key, "v", "PX", "300"];
    if (part < 0.9) return ["SET", key, "v".repeat(20 + Math.floor(next() * 9000))];
    if (part < 0.95) return ["MGET", key, `item:${Math.floor(next() * 9000)}`];
    if (part < 0.98) return ["EXISTS", key];
    return ["INCR", `counter:${Math.floor(next() * 20)}`];
  });
}
