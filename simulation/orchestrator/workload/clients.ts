import { createKey, revokeKey } from '../../../src/orchestrator/accounts/accounts.ts';
import type { Chance } from '../../kernel/chance.ts';
import { drawSshKey } from '../../kernel/ssh-keys.ts';
import { exchange } from '../../kernel/wire.ts';
import { type Accounts, TENANTS } from '../accounts.ts';
import type { OrchestratorWorld } from '../replicas/replica.ts';
import { type Key, Tenant } from './tenant.ts';

export interface Asked {
  method: string;
  path: string;
  body?: object;
  idempotencyKey?: string;
}

/** A reply, as its client has it. Times are virtual. */
export interface Reply {
  tenant: string;
  method: string;
  path: string;
  status: number;
  body: unknown;
  text: string;
  etag: string | null;
  contentType: string | null;
  /** Whether it was marked as the replay of an earlier create. */
  isReplay: boolean;
  sentAt: number;
  arrivedAt: number;
}

/** Checks what clients see. */
export interface ReplyInspector {
  replied(reply: Reply, tenant: Tenant, key: Key): void;
  /** Runs a check of the caller's own. */
  check(body: () => void): void;
}

/** What the clients use of the world. */
type ClientsWorld = OrchestratorWorld & { readonly inspector: ReplyInspector };

/** What a command uses of the world. */
export type WorkloadWorld = ClientsWorld & { readonly clients: Clients };

/** The tenants, and the wire between them and the servers, which may lose an answer. */
export class Clients {
  readonly tenants: readonly Tenant[];
  readonly chance: Chance;
  readonly sshKeys: readonly string[];
  readonly #world: ClientsWorld;
  #sent = 0;

  constructor(world: ClientsWorld, accounts: Accounts) {
    this.#world = world;
    this.chance = world.chance.fork('clients');
    this.tenants = TENANTS.map((name) => new Tenant(name, accounts[name], world.scheduler.now));
    this.sshKeys = [1, 2, 3].map((index) => drawSshKey(this.chance.fork(`ssh-key/${index}`), `key-${index}`));
  }

  hasAskedToDelete(id: string): boolean {
    return this.tenants.some(({ deleteSent }) => deleteSent.has(id));
  }

  tenantOf(accountId: string): Tenant | undefined {
    return this.tenants.find((tenant) => tenant.accountId === accountId);
  }

  /** Sends a request to one of the servers; undefined: no answer came, and the request was applied or not. */
  async ask(tenant: Tenant, asked: Asked): Promise<Reply | undefined> {
    const { scheduler, scenario, replicas } = this.#world;
    const serving = replicas.flatMap((replica) => replica.serving ?? []);
    if (serving.length === 0) return undefined;
    const { process, orchestrator } = this.chance.pick(serving);
    const key = this.#drawKey(tenant);
    const { method, path, body, idempotencyKey } = asked;
    const sentAt = scheduler.now;
    const received = await exchange(this.#world, process, orchestrator.app, {
      ...{ method, path, body, key: key.text },
      label: `${tenant.name}#${++this.#sent}`,
      headers: idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey },
      isLost: !this.#world.isCalm && this.chance.happens(scenario.lostReplies),
    });
    if (received === undefined) return undefined;
    const { status, headers, text } = received;
    const reply: Reply = {
      ...{ tenant: tenant.name, method, path, status, text, sentAt },
      body: received.body,
      etag: headers.get('etag'),
      contentType: headers.get('content-type'),
      isReplay: headers.get('idempotent-replayed') === 'true',
      arrivedAt: scheduler.now,
    };
    this.#world.inspector.replied(reply, tenant, key);
    return reply;
  }

  /** The operator gives a tenant another key. */
  async addKey(tenant: Tenant): Promise<void> {
    const { database, scheduler, chance } = this.#world;
    database.writer = null;
    const random = chance.fork(`key/${tenant.name}/${tenant.keys.length}`);
    const { key, record } = await createKey(
      { store: database.store, clock: scheduler.clock, random },
      tenant.name,
    );
    tenant.keys.push({ id: record.id, text: key, validFrom: scheduler.now, revokedAt: undefined });
  }

  /** The operator revokes the tenant's oldest key that still is valid. */
  async revokeKey(tenant: Tenant): Promise<void> {
    const { database, scheduler, journal } = this.#world;
    database.writer = null;
    const valid = tenant.keys.filter(({ revokedAt }) => revokedAt === undefined);
    const [oldest] = valid;
    if (oldest === undefined || valid.length < 2) return;
    oldest.revokedAt = scheduler.now;
    await revokeKey({ store: database.store, clock: scheduler.clock, random: this.chance }, oldest.id);
    journal.note('operator', `revokes a key of ${tenant.name}`);
  }

  /** A valid key in most cases, a revoked one in a few. */
  #drawKey({ keys }: Tenant): Key {
    const valid = keys.filter(({ revokedAt }) => revokedAt === undefined);
    return this.chance.pick(this.chance.happens(0.05) ? keys : valid);
  }
}
