import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request as send } from 'undici';
import { grant } from '../../src/marketplace/ledger/credit.ts';
import type { Mailer } from '../../src/marketplace/mail/mailer.ts';
import { defaultOptions, type MarketplaceOptions } from '../../src/marketplace/model/options.ts';
import { resolveTeam } from '../../src/marketplace/teams/access.ts';
import { createKey } from '../../src/marketplace/teams/keys.ts';
import { addUser, type UserChanges } from '../../src/marketplace/teams/users.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { silentLog } from '../support/doubles/log.ts';
import { assertKeepsMarketplaceContract } from '../support/http/contract.ts';
import { PATIENCE_MS } from '../support/time/until.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';
import { type MarketplaceLife, startLife, type Traffic } from './mortal-marketplace.ts';
import { type SimulatedProvider, startProvider } from './simulated-provider.ts';

/** The databases are not needed afterwards: where the system has files in memory, no commit waits for a disk. */
const MEMORY = '/dev/shm';
if (existsSync(MEMORY)) process.env['TMPDIR'] = MEMORY;

export const sevenLetters = ['a', 'b', 'c', 'd', 'e', 'f', 'g'] as const;
export type ProviderLetter = (typeof sevenLetters)[number];

export interface MarketOptions {
  letters?: readonly ProviderLetter[];
  options?: Partial<Omit<MarketplaceOptions, 'polling'>> & {
    polling?: Partial<MarketplaceOptions['polling']>;
  };
  /** How often each orchestrator looks at its platform. */
  watchIntervalMs?: number;
  /** At least as long as a step of the clock. */
  leaseMs?: number;
}

export interface MarketReply {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each endpoint has an answer of its own; the contract is asserted
  body: any;
}

export interface MarketUser {
  userId: string;
  teamId: string;
  key: string;
}

/** So many turns of the event loop without anything under way are quiet. */
const QUIET_TURNS = 6;
const TICK_MS = 500;
const MAX_TICKS = 2_000;
/** What waits for less is in the middle of something. */
const SOON_MS = 2_000;
const MAX_WAITS = 20;

/**
 * A marketplace and its providers, each a server with an address of its own; users speak to it over HTTP, and it to
 * them. Time stands still while anything is under way.
 */
export class SevenProviders {
  readonly clock = new VirtualClock(Date.UTC(2026, 10, 1));
  readonly providers = new Map<string, SimulatedProvider>();
  readonly mails: Parameters<Mailer['send']>[0][] = [];
  readonly databasePath: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'berth-seven-'));
  readonly #traffic: Traffic = { calls: 0 };
  /** Bytes of users and to users that are under way. */
  #transits = 0;
  readonly #agent = new Agent({ connections: 8 });
  readonly #options: Required<Pick<MarketOptions, 'leaseMs' | 'watchIntervalMs'>> & MarketOptions;
  #life: MarketplaceLife | undefined;
  readonly #server = createServer((request, response) => {
    this.#transits -= 1;
    response.once('finish', () => {
      this.#transits += 1;
    });
    this.life.listener(request, response);
  });

  constructor(options: MarketOptions) {
    this.#options = { leaseMs: 0, watchIntervalMs: 60_000, ...options };
    this.databasePath = join(this.#folder, 'marketplace.db');
  }

  get life(): MarketplaceLife {
    if (this.#life === undefined) throw new Error('the marketplace does not run');
    return this.#life;
  }

  async start(): Promise<void> {
    const { letters = sevenLetters, watchIntervalMs } = this.#options;
    for (const letter of letters) {
      const provider = await this.drive(startProvider({ letter, clock: this.clock, watchIntervalMs }));
      this.providers.set(provider.id, provider);
    }
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    await this.startMarketplace();
  }

  /** A new process on the same database. */
  async startMarketplace(): Promise<void> {
    const { options, leaseMs } = this.#options;
    const nothing = () => undefined;
    const starting = startLife({
      clock: this.clock,
      traffic: this.#traffic,
      databasePath: this.databasePath,
      leaseMs,
      providers: [...this.providers.values()],
      options: { ...defaultOptions, ...options, polling: { ...defaultOptions.polling, ...options?.polling } },
      mailer: { send: async (mail) => void this.mails.push(mail), close: nothing },
      log: silentLog,
    });
    this.#life = await this.drive(starting);
    await this.drive(this.life.marketplace.workers.refreshCatalogs());
    await this.settle();
  }

  /** Ends the marketplace's process without a word. */
  async kill(): Promise<void> {
    const { life } = this;
    this.#life = undefined;
    await life.kill();
    await this.settle();
  }

  provider(id: string): SimulatedProvider {
    const provider = this.providers.get(id);
    if (provider === undefined) throw new Error(`there is no ${id}`);
    return provider;
  }

  /** Waits until nothing is under way; time does not go on. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      const isBusy = this.clock.fire() || this.#traffic.calls > 0 || this.#transits > 0;
      if (isBusy) quiet = -1;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Lets time go on by one step, and what came due be done; what that waits for soon, too. */
  async pass(ms: number): Promise<void> {
    await this.settle();
    this.clock.step(ms);
    await this.settle();
    for (let wait = 0; wait < MAX_WAITS; wait++) {
      const soon = this.clock.nextIn();
      if (soon === null || soon > SOON_MS) return;
      this.clock.step(soon);
      await this.settle();
    }
  }

  /** Waits for what needs time, in small steps. */
  async drive<T>(promise: Promise<T>, tickMs = TICK_MS): Promise<T> {
    let isSettled = false;
    const watched = promise.finally(() => {
      isSettled = true;
    });
    watched.catch(() => undefined);
    await this.settle();
    for (let tick = 0; tick < MAX_TICKS && !isSettled; tick++) await this.pass(tickMs);
    // What a busy machine still reads from its disk, as a module is, waits for no clock of ours.
    const giveUpAt = performance.now() + PATIENCE_MS;
    while (!isSettled && performance.now() < giveUpAt) await this.settle();
    if (!isSettled) throw new Error('it does not settle, however much time passes');
    return watched;
  }

  /** Lets time go on in small steps until it is so. */
  async until(isSo: () => Promise<boolean>, what: string, tickMs = 1_000): Promise<void> {
    for (let tick = 0; tick < MAX_TICKS; tick++) {
      if (await isSo()) return;
      await this.pass(tickMs);
    }
    throw new Error(`${what}: it did not come about`);
  }

  /** A request of a user over HTTP; its reply must keep the published contract. */
  async ask(
    method: string,
    path: string,
    { key, body }: { key?: string | undefined; body?: unknown } = {},
  ): Promise<MarketReply> {
    return this.drive(this.#send(method, path, { key, body }));
  }

  async #send(method: string, path: string, { key, body }: { key?: string | undefined; body?: unknown }) {
    const { port } = this.#server.address() as AddressInfo;
    this.#transits += 1;
    const answer = await send(`http://127.0.0.1:${port}${path}`, {
      method: method as 'GET',
      dispatcher: this.#agent,
      // Timeouts of answers are on the virtual clock.
      headersTimeout: 0,
      bodyTimeout: 0,
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    this.#transits -= 1;
    const { statusCode: status } = answer;
    assertKeepsMarketplaceContract({
      method,
      path: path.replace(/\?.*$/, ''),
      status,
      body: text,
      contentType: String(answer.headers['content-type'] ?? ''),
    });
    return { status, body: text === '' ? null : JSON.parse(text) };
  }

  /** A user with a key, a team of their own and `creditUsd` to spend. */
  async addUser(email: string, creditUsd: number, changes: UserChanges = {}): Promise<MarketUser> {
    const deps = { store: this.life.store, clock: this.clock, random: systemRandom };
    const { id: userId } = await addUser(deps, { email, mayMakeKeys: true, ...changes });
    const { key } = await createKey(deps, email);
    const teamId = await resolveTeam(deps, { userId });
    if (creditUsd > 0) await grant(deps, { teamId, amountMicroUsd: creditUsd * 1_000_000 });
    return { userId, teamId, key };
  }

  async close(): Promise<void> {
    if (this.#life !== undefined) await this.drive(this.#life.close());
    for (const provider of this.providers.values()) await this.drive(provider.close());
    await this.#agent.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
