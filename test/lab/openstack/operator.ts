import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, type Api, ApiError } from './api.ts';

/** Servers and volumes change in a second or two here; a busy machine is slower. */
const PATIENCE_MS = 300_000;

/** Changes that an administrator of the cloud makes, to servers by their ids. */
export class Operator {
  readonly api: Api;

  constructor(api: Api) {
    this.api = api;
  }

  async server(id: string): Promise<Answer> {
    return (await this.api.send('nova-api', 'GET', `/servers/${id}`)).server;
  }

  /** Until it has this status and nothing is being done with it. @throws {Error} if it becomes ERROR instead */
  async becomes(id: string, status: string): Promise<Answer> {
    const deadline = Date.now() + PATIENCE_MS;
    while (true) {
      const server = await this.server(id);
      const task = server['OS-EXT-STS:task_state'];
      if (server.status === status && task === null) return server;
      if (server.status === 'ERROR' || Date.now() > deadline)
        throw new Error(
          `${id} is ${server.status} (${task}), not ${status}: ${JSON.stringify(server.fault)}`,
        );
      await sleep(300);
    }
  }

  async isGone(id: string): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (Date.now() < deadline) {
      const found = await this.server(id).catch((error) => {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      });
      if (found === undefined) return;
      await sleep(300);
    }
    throw new Error(`${id} is still there`);
  }

  async #act(id: string, body: object): Promise<void> {
    await this.api.send('nova-api', 'POST', `/servers/${id}/action`, body);
  }

  async rename(id: string, name: string): Promise<void> {
    await this.api.send('nova-api', 'PUT', `/servers/${id}`, { server: { name } });
  }

  async remove(id: string): Promise<void> {
    await this.api.send('nova-api', 'DELETE', `/servers/${id}`);
    await this.isGone(id);
  }

  /** To another host of its zone, and confirms it. */
  async migrate(id: string): Promise<void> {
    await this.#act(id, { migrate: null });
    await this.becomes(id, 'VERIFY_RESIZE');
    await this.#act(id, { confirmResize: null });
    await this.becomes(id, 'ACTIVE');
  }

  async rebuild(id: string, imageRef: string): Promise<void> {
    await this.#act(id, { rebuild: { imageRef } });
    await this.becomes(id, 'ACTIVE');
  }

  async rescue(id: string): Promise<void> {
    await this.#act(id, { rescue: {} });
    await this.becomes(id, 'RESCUE');
  }

  async unrescue(id: string): Promise<void> {
    await this.#act(id, { unrescue: null });
    await this.becomes(id, 'ACTIVE');
  }

  async pause(id: string): Promise<void> {
    await this.#act(id, { pause: null });
    await this.becomes(id, 'PAUSED');
  }

  /** Makes a host a zone of its own. */
  async addZone(host: string, zone: string): Promise<void> {
    const { aggregate } = await this.api.send('nova-api', 'POST', '/os-aggregates', {
      aggregate: { name: zone, availability_zone: zone },
    });
    await this.#changeAggregate(aggregate, 'add_host', host);
  }

  /** Moves a host without machines to another zone. */
  async moveHost(host: string, zone: string): Promise<void> {
    const { aggregates } = await this.api.send('nova-api', 'GET', '/os-aggregates');
    for (const one of aggregates)
      if (one.hosts.includes(host)) await this.#changeAggregate(one, 'remove_host', host);
    const target = aggregates.find(({ availability_zone }: Answer) => availability_zone === zone);
    await this.#changeAggregate(target, 'add_host', host);
  }

  async #changeAggregate({ id }: Answer, action: 'add_host' | 'remove_host', host: string): Promise<void> {
    await this.api.send('nova-api', 'POST', `/os-aggregates/${id}/action`, { [action]: { host } });
  }
}
