import { createKey, revokeKey } from '../../../src/orchestrator/accounts/accounts.ts';
import type { Catalog } from '../../../src/orchestrator/catalog/catalog.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { Journal } from '../../kernel/journal.ts';
import { drawSshKey } from '../../kernel/ssh-keys.ts';
import type { Tally } from '../../kernel/tally.ts';
import { type Accounts, TENANTS } from '../accounts.ts';
import type { Database } from '../replicas/database.ts';
import type { OrchestratorReplica } from '../replicas/replica.ts';
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
export interface ClientsWorld {
  readonly chance: Chance;
  readonly scheduler: Scheduler;
  readonly journal: Journal;
  readonly scenario: { readonly lostReplies: number };
  readonly replicas: readonly Pick<OrchestratorReplica, 'serving'>[];
  readonly database: Database;
  readonly inspector: ReplyInspector;
  readonly isCalm: boolean;
  readonly catalog: Catalog;
}

/** What a command uses of the world. */
export interface WorkloadWorld extends ClientsWorld {
  readonly clients: Clients;
  readonly tally: Tally;
  /** Commands that are not finished. */
  running: number;
  /** Ends the run with an error that no caller waits for. */
  fail(error: unknown): void;
}

/** A client gives up on a request after this long. */
const PATIENCE_MS = 60_000;

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
    const { scheduler, journal, scenario, replicas } = this.#world;
    const serving = replicas.flatMap((replica) => replica.serving ?? []);
    if (serving.length === 0) return undefined;
    const { process, orchestrator } = this.chance.pick(serving);
    const key = this.#drawKey(tenant);
    const label = `${tenant.name}#${++this.#sent}`;
    const isLost = !this.#world.isCalm && this.chance.happens(scenario.lostReplies);
    const sentAt = scheduler.now;
    journal.note(label, `${asked.method} ${asked.path} to ${process.name}`);
    const answer = process.reach(() => process.orDeath(async () => send(orchestrator.app, asked, key.text)));
    const response = await Promise.race([
      answer.catch(() => undefined),
      process.orDeath(() => scheduler.sleep(PATIENCE_MS)).catch(() => undefined),
    ]);
    scheduler.noteActivity();
    if (response === undefined || isLost) {
      journal.note(label, response === undefined ? 'has no answer' : `lost its answer ${response.status}`);
      return undefined;
    }
    const reply: Reply = {
      tenant: tenant.name,
      method: asked.method,
      path: asked.path,
      ...response,
      sentAt,
      arrivedAt: scheduler.now,
    };
    journal.note(label, `${reply.status} ${brief(reply.body)}`);
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

interface App {
  request(path: string, init: RequestInit): Response | Promise<Response>;
}

async function send(app: App, { method, path, body, idempotencyKey }: Asked, key: string) {
  const response = await app.request(path, {
    method,
    headers: {
      Authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    text,
    body: text === '' ? null : (JSON.parse(text) as unknown),
    etag: response.headers.get('etag'),
    contentType: response.headers.get('content-type'),
    isReplay: response.headers.get('idempotent-replayed') === 'true',
  };
}

function brief(body: unknown): string {
  if (typeof body !== 'object' || body === null) return '';
  const { id, status, error } = body as { id?: string; status?: string; error?: { code?: string } };
  return [id, status, typeof error === 'object' ? error.code : undefined].filter(Boolean).join(' ');
}
