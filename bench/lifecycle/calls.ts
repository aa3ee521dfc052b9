import { setTimeout as pause } from 'node:timers/promises';
import type { BenchClient, Reply } from '../support/client.ts';

/** The measured calls, in the order of a round. */
export const calls = ['pause', 'resume', 'attach', 'detach', 'resize', 'restart'] as const;
export type Call = (typeof calls)[number];

/** Milliseconds that each call took. */
export type Round = Record<Call, number>;

const RESTART_OVER_MS = 100;

/** The resources that a round changes. */
export interface Things {
  /** A restart occupies one for some seconds, so each round uses the next. */
  deploymentIds: readonly string[];
  volumeId: string;
}

/** Sends requests to the servers of one marketplace in turn, and measures them. */
export class LifecycleCalls {
  readonly #clients: readonly BenchClient[];
  readonly #things: Things;
  #sent = 0;
  #rounds = 0;
  #sizeGb: number;

  constructor(clients: readonly BenchClient[], things: Things & { sizeGb: number }) {
    this.#clients = clients;
    this.#things = things;
    this.#sizeGb = things.sizeGb;
  }

  /** @throws {Error} for a reply other than 200 */
  async round(): Promise<Round> {
    const { deploymentIds, volumeId } = this.#things;
    const deploymentId = deploymentIds[this.#rounds++ % deploymentIds.length] ?? '';
    const deployment = `/api/deployments/${deploymentId}`;
    const volume = `/api/volumes/${volumeId}`;
    const on = { deploymentId };
    if (this.#rounds > deploymentIds.length) await this.#restarted(deployment);
    return {
      pause: await this.#time('POST', `${deployment}/pause`),
      resume: await this.#time('POST', `${deployment}/resume`),
      attach: await this.#time('POST', `${volume}/attach`, on),
      detach: await this.#time('POST', `${volume}/detach`, on),
      resize: await this.#time('PATCH', volume, { sizeInGb: ++this.#sizeGb }),
      restart: await this.#time('POST', `${deployment}/restart`),
    };
  }

  async #restarted(deployment: string): Promise<void> {
    for (;;) {
      const { text } = await this.#send('GET', `${deployment}/reboot-status`);
      if (!(JSON.parse(text) as { restarting: boolean }).restarting) return;
      await pause(RESTART_OVER_MS);
    }
  }

  async #time(method: string, path: string, body?: object): Promise<number> {
    const { tookMs } = await this.#send(method, path, body);
    return tookMs;
  }

  async #send(method: string, path: string, body?: object): Promise<Reply> {
    const client = this.#clients[this.#sent++ % this.#clients.length] as BenchClient;
    const reply = await client.send(method, path, body === undefined ? undefined : JSON.stringify(body));
    if (reply.status === 200) return reply;
    throw new Error(`${method} ${path} is answered ${reply.status}: ${reply.text.slice(0, 300)}`);
  }
}
