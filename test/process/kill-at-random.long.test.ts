import { expect, it } from 'vitest';
import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import type { Client, ClientReply } from '../support/http/http-client.ts';
import { MortalServer } from '../support/processes/mortal-server.ts';

const ROUNDS = 10;
const WORKERS = 6;
const LONGEST_LIFE_MS = 700;
const PLACEMENTS = [
  { configuration_id: 'h100-sxm-1x', region: 'eu-frankfurt' },
  { configuration_id: 'h100-sxm-2x', region: 'eu-frankfurt' },
  { configuration_id: 'cpu-4x16', region: 'us-ashburn' },
];
/** The decisions of a run; its timing is the machine's. */
const seed = process.env['BERTH_SEED'] ?? '1';
process.stdout.write(`BERTH_SEED=${seed}\n`);

/** One instance as its client knows it. */
interface Known {
  create: (client: Client) => Promise<ClientReply>;
  /** Undefined until a create was answered. */
  id: string | undefined;
  /** A DELETE was sent: from now on 404 is right. */
  isDeleteSent: boolean;
  /** A DELETE was answered with 200 or 404: it must go. */
  isDeleteAnswered: boolean;
}

/** The clients of a marketplace. Each sends one request after another; a lost reply is asked for again later. */
class Load {
  readonly #server: MortalServer;
  readonly #random = createSeededRandom(seed);
  readonly known: Known[] = [];
  readonly complaints: string[] = [];
  requests = 0;

  constructor(server: MortalServer) {
    this.#server = server;
  }

  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.#random.next() * items.length)];
  }

  lifeMs(): number {
    return this.#random.next() * LONGEST_LIFE_MS;
  }

  /** Works until a request finds no server. */
  async work(): Promise<void> {
    const { client } = this.#server;
    try {
      for (;;) await this.#once(client);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }

  async #once(client: Client): Promise<void> {
    const chance = this.#random.next();
    const instance = this.pick(this.known.filter(({ isDeleteAnswered }) => !isDeleteAnswered));
    this.requests++;
    if (instance === undefined || (chance < 0.25 && this.known.length < 60))
      return this.create(client, this.#begin());
    if (instance.id === undefined) return this.create(client, instance);
    if (chance < 0.4) return this.delete(client, instance);
    if (chance < 0.6)
      return this.#expectFound(instance, await client.request('POST', `/instances/${instance.id}/stop`));
    if (chance < 0.8)
      return this.#expectFound(instance, await client.request('POST', `/instances/${instance.id}/start`));
    return this.read(client, instance);
  }

  #begin(): Known {
    const body = { ...this.pick(PLACEMENTS), ssh_keys: [newPublicKey()] };
    const headers = { 'Idempotency-Key': `key-${this.known.length}` };
    const create = (client: Client) => client.request('POST', '/instances', { body, headers });
    const instance = { create, id: undefined, isDeleteSent: false, isDeleteAnswered: false };
    this.known.push(instance);
    return instance;
  }

  /** The same key means the same instance, however often it is sent and whichever server was killed in between. */
  async create(client: Client, instance: Known): Promise<void> {
    const { status, body } = await instance.create(client);
    if (status === 409) return;
    const id = String(body['id']);
    if (status !== 201) this.complaints.push(`a create is answered ${status}: ${JSON.stringify(body)}`);
    else if (instance.id !== undefined && instance.id !== id)
      this.complaints.push(`${instance.id} was created again as ${id}`);
    else instance.id = id;
  }

  async delete(client: Client, instance: Known): Promise<void> {
    instance.isDeleteSent = true;
    const { status } = await client.request('DELETE', `/instances/${instance.id}`);
    if (status !== 200 && status !== 404) this.complaints.push(`a delete is answered ${status}`);
    instance.isDeleteAnswered = true;
  }

  async read(client: Client, instance: Known): Promise<void> {
    this.#expectFound(instance, await client.request('GET', `/instances/${instance.id}`));
  }

  #expectFound({ id, isDeleteSent }: Known, { status }: ClientReply): void {
    if (status >= 500 || (status === 404 && !isDeleteSent))
      this.complaints.push(`${id} is answered ${status}`);
  }
}

it(`loses, leaks and frees nothing twice when it is killed at random under load (seed ${seed})`, async () => {
  await using server = new MortalServer();
  const load = new Load(server);
  for (let round = 0; round < ROUNDS; round++) {
    await server.start();
    const workers = Array.from({ length: WORKERS }, () => load.work());
    await new Promise((resolve) => setTimeout(resolve, load.lifeMs()));
    await server.kill();
    await Promise.all(workers);
  }

  await server.start();
  const { client } = server;
  const issued = load.known.filter(({ id }) => id !== undefined);
  for (const instance of issued) await load.create(client, instance);
  for (const instance of issued.filter(({ isDeleteSent }) => !isDeleteSent))
    await load.read(client, instance);
  expect(load.complaints).toEqual([]);
  expect(load.requests).toBeGreaterThan(30);

  for (const { id } of issued.filter(({ isDeleteAnswered }) => isDeleteAnswered))
    await client.waitFor(`/instances/${id}`, 'GONE');
  await server.expectOrder();
  const { instances, claims } = server.ledger();
  expect(new Set(instances.map(({ id }) => id)).size).toBe(instances.length);
  for (const { id, isDeleteSent } of issued)
    if (!isDeleteSent) expect(instances).toContainEqual(expect.objectContaining({ id }));
  expect(instances.filter(({ status }) => status === 'ERROR')).toEqual([]);

  const scarce = instances.filter(({ id, offerId }) => offerId === 'h100-sxm-1x' && claims.includes(id));
  expect(scarce.length).toBeLessThanOrEqual(3);
  const more = Array.from({ length: 4 }, () =>
    client.request('POST', '/instances', { body: { ...PLACEMENTS[0], ssh_keys: [newPublicKey()] } }),
  );
  const statuses = (await Promise.all(more)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 201)).toHaveLength(3 - scarce.length);
});
