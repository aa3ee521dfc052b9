import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import type { Reply, SoakClient } from './client.ts';
import { Dice, sleep } from './dice.ts';
import type { Journal } from './journal.ts';
import { Possession } from './possession.ts';
import type { Replica } from './processes.ts';

export interface MarketParts {
  client: SoakClient;
  replicas: readonly Replica[];
  journal: Journal;
  seed: string;
}

/** The first is scarce, of three units; the second keeps its units while it is stopped. */
export const PLACEMENTS = [
  { configuration_id: 'h100-sxm-1x', region: 'eu-frankfurt' },
  { configuration_id: 'h100-sxm-2x', region: 'eu-frankfurt' },
  { configuration_id: 'cpu-4x16', region: 'eu-frankfurt' },
] as const;
const MAX_LIVE = { instances: 16, volumes: 6 };
const WEIGHTS = {
  create: 22,
  delete: 9,
  stop: 14,
  start: 18,
  list: 6,
  createVolume: 5,
  deleteVolume: 4,
  attach: 12,
  detach: 8,
  askAgain: 4,
};
const PAUSE_MS = [10, 120] as const;

/** All that was bought, and the buyers, who each send one request after another to any replica. */
export class Market {
  readonly possessions: Possession[] = [];
  readonly #parts: MarketParts;
  #isOpen = true;

  constructor(parts: MarketParts) {
    this.#parts = parts;
  }

  live(kind: Possession['kind']): Possession[] {
    return this.possessions.filter((one) => one.kind === kind && one.isLive);
  }

  close(): void {
    this.#isOpen = false;
  }

  /** Works until the market closes. */
  async buy(name: string): Promise<void> {
    const dice = new Dice(this.#parts.seed, name);
    while (this.#isOpen) {
      await this.#once(dice);
      await sleep(dice.between(...PAUSE_MS));
    }
  }

  /** Asks for what was never answered until it is. */
  async settle(): Promise<void> {
    const { replicas } = this.#parts;
    const [first] = replicas;
    if (first === undefined) return;
    for (const possession of this.possessions) {
      if (possession.isCreateInDoubt && possession.id === undefined) await this.create(possession, first);
      if (possession.deleteSentAt !== undefined && possession.deleteAnsweredAt === undefined)
        await this.delete(possession, first);
    }
  }

  /** True: it was answered 201. */
  async create(possession: Possession, replica: Replica): Promise<boolean> {
    const { kind, key, request } = possession;
    const reply = await this.#insist(replica, 'POST', `/${kind}`, { body: request, key });
    if (reply === undefined || reply.isRepeated) possession.isCreateInDoubt = true;
    if (reply?.status === 201) possession.created(reply);
    else if (reply !== undefined && reply.status !== 409) this.#odd(possession, 'create', reply);
    return reply?.status === 201;
  }

  async delete(possession: Possession, replica: Replica): Promise<void> {
    possession.deleteSentAt ??= Date.now();
    const reply = await this.#insist(replica, 'DELETE', possession.path);
    if (reply === undefined || reply.isRepeated) possession.isDeleteInDoubt = true;
    if (reply === undefined) return;
    if (reply.status === 409 && possession.kind === 'volumes') {
      // It is attached, and kept.
      if (!possession.isDeleteInDoubt) possession.deleteSentAt = undefined;
      return;
    }
    if ([200, 204, 404].includes(reply.status)) possession.deleteAnsweredAt = reply.receivedAt;
    else this.#odd(possession, 'DELETE', reply);
  }

  /** From all instances. */
  async detach(volume: Possession, replica: Replica): Promise<void> {
    await this.#insistOn(volume, '/detach', replica);
  }

  begin(kind: Possession['kind'], request: Record<string, unknown>): Possession {
    const key = `${kind}-${this.possessions.length}-${this.#parts.seed}`;
    const possession = new Possession(kind, key, request, this.#parts.journal);
    this.possessions.push(possession);
    return possession;
  }

  async #once(dice: Dice): Promise<void> {
    const { replicas, journal } = this.#parts;
    const replica = dice.pick(replicas);
    if (replica === undefined) return;
    const operation = dice.weighted(WEIGHTS);
    const instance = dice.pick(this.live('instances'));
    const volume = dice.pick(this.live('volumes'));
    const did = await this.#do(operation, { dice, replica, instance, volume });
    if (did) journal.operation(operation);
  }

  /** False: there was nothing to do it with. */
  async #do(
    operation: keyof typeof WEIGHTS,
    given: { dice: Dice; replica: Replica; instance: Possession | undefined; volume: Possession | undefined },
  ): Promise<boolean> {
    const { dice, replica, instance, volume } = given;
    switch (operation) {
      case 'create': {
        if (this.live('instances').length >= MAX_LIVE.instances) return false;
        await this.create(
          this.begin('instances', { ...dice.pick(PLACEMENTS), ssh_keys: [newPublicKey()] }),
          replica,
        );
        return true;
      }
      case 'createVolume': {
        if (this.live('volumes').length >= MAX_LIVE.volumes) return false;
        const request = { name: 'data', size_gb: 20, region: 'eu-frankfurt', type: 'nvme' };
        await this.create(this.begin('volumes', request), replica);
        return true;
      }
      case 'askAgain': {
        const open = dice.pick(
          this.possessions.slice(-50).filter(({ deleteSentAt }) => deleteSentAt === undefined),
        );
        if (open !== undefined) await this.create(open, replica);
        return open !== undefined;
      }
      case 'list':
        await this.#list(replica);
        return true;
      case 'delete':
        if (instance !== undefined) await this.delete(instance, replica);
        return instance !== undefined;
      case 'deleteVolume':
        if (volume !== undefined) await this.delete(volume, replica);
        return volume !== undefined;
      case 'stop':
      case 'start':
        if (instance !== undefined) await this.#order(instance, operation, replica);
        return instance !== undefined;
      case 'attach':
      case 'detach':
        if (instance === undefined || volume === undefined) return false;
        await this.#insistOn(volume, `/${operation}`, replica, { instance_ids: [instance.id] });
        return true;
    }
  }

  async #order(instance: Possession, operation: 'stop' | 'start', replica: Replica): Promise<void> {
    instance.isOrdered = true;
    await this.#insistOn(instance, `/${operation}`, replica);
  }

  async #insistOn(possession: Possession, verb: string, replica: Replica, body?: object): Promise<void> {
    const reply = await this.#insist(replica, 'POST', `${possession.path}${verb}`, { body });
    if (reply === undefined || reply.status === 200 || reply.status === 409) return;
    // Either of two resources of an attach may be deleted by another buyer meanwhile.
    if (reply.status !== 404 || (possession.isLive && verb !== '/attach')) this.#odd(possession, verb, reply);
  }

  async #list(replica: Replica): Promise<void> {
    const before = this.live('instances').filter(({ boughtAt }) => boughtAt !== undefined);
    const reply = await this.#parts.client.send(replica, { method: 'GET', path: '/instances' });
    if (reply?.status !== 200) return;
    const { instances } = reply.body as { instances: { id: string }[] };
    const listed = new Set(instances.map(({ id }) => id));
    for (const possession of before)
      if (possession.isLive && !listed.has(possession.id ?? ''))
        this.#parts.journal.lose(`${possession.id} is not in the list`, { replica: reply.replica });
  }

  #insist(
    replica: Replica,
    method: 'POST' | 'DELETE',
    path: string,
    { body, key }: { body?: unknown; key?: string } = {},
  ): Promise<Reply | undefined> {
    const headers = key === undefined ? {} : { 'Idempotency-Key': key };
    return this.#parts.client.insist({ method, path, body, headers }, replica);
  }

  #odd(possession: Possession, what: string, { status, body, replica }: Reply): void {
    this.#parts.journal.lose(`${possession.id ?? possession.key}: ${what} is answered ${status}`, {
      replica,
      body,
    });
  }
}
