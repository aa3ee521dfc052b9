import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock } from '../http/clock.ts';
import type { Transport } from '../http/transport.ts';
import { type AutoClock, createAutoClock } from '../mutants/reference/auto-clock.ts';
import { createReference, type Reference } from '../mutants/reference/create-reference.ts';
import type { ReferenceOptions } from '../mutants/reference/model.ts';
import type { Rules } from '../mutants/reference/rules.ts';
import type { SshClient } from '../ssh/ssh-client.ts';
import type { Certificate } from './certificate/certificate.ts';
import type { MonitorConfig } from './config.ts';
import { Monitor } from './monitor.ts';
import type { Alert } from './records.ts';
import { DEFAULT_RULES } from './rules.ts';
import { dayOf, MS_PER_DAY } from './spending.ts';
import { openState, type State } from './state.ts';

/** A provider that a test watches. */
export interface WatchedSubject {
  /** Kebab-case. */
  id: string;
  options?: Partial<ReferenceOptions>;
  behave?: (rules: Rules, clock: AutoClock) => Rules;
  /** What the network does to its answers. */
  network?: (transport: Transport, clock: Clock) => Transport;
}

export const BUDGET_USD = 0.08;
const QUARTER_HOUR_MS = 900_000;

export function configOf(changed: Partial<MonitorConfig> = {}): MonitorConfig {
  return {
    state: 'unused',
    providers: [],
    reads: { mean_hours: 6 },
    machines: { least_hours: 2, mean_extra_minutes: 60, longest_use_minutes: 240, stopped_share: 0.3 },
    poll_interval_ms: 10_000,
    ready_timeout_s: 900,
    window_days: 30,
    enough: { days: 7, reads: 20, machines: 5 },
    rules: [...DEFAULT_RULES],
    ...changed,
  };
}

/** Providers in virtual time, and the folder of a state. */
export class MonitoredWorld implements AsyncDisposable {
  readonly clock = createAutoClock();
  readonly references: ReadonlyMap<string, Reference>;
  readonly folder = mkdtempSync(join(tmpdir(), 'berth-monitor-'));
  readonly #networks = new Map<string, NonNullable<WatchedSubject['network']>>();
  readonly #states: State[] = [];
  readonly #running: Running[] = [];

  constructor(subjects: readonly WatchedSubject[]) {
    this.references = new Map(
      subjects.map(({ id, options, behave = (rules) => rules, network }) => {
        if (network !== undefined) this.#networks.set(id, network);
        const baseUrl = `https://${id}.test/v1`;
        return [
          id,
          createReference({
            ...options,
            baseUrl,
            clock: this.clock,
            behave: (rules) => behave(rules, this.clock),
          }),
        ];
      }),
    );
  }

  /** The provider of a world with one. */
  get reference(): Reference {
    const [first] = this.references.values();
    if (first === undefined) throw new Error('there is no provider to watch');
    return first;
  }

  async openState(): Promise<State> {
    const state = await openState(this.folder);
    this.#states.push(state);
    return state;
  }

  /** Starts a monitor on the state of this world. */
  async start({
    config = configOf(),
    budgetUsd = BUDGET_USD,
    clock = this.clock,
    state,
    transport = noTransport,
  }: {
    config?: MonitorConfig;
    budgetUsd?: number;
    clock?: Clock;
    state?: State;
    transport?: Transport;
  } = {}): Promise<Running> {
    const ending = new AbortController();
    const abandoning = new AbortController();
    const log: string[] = [];
    const monitor = new Monitor({
      config,
      watched: [...this.references].map(([name, { options, transport: usual }]) => ({
        provider: {
          name,
          base_url: options.baseUrl,
          budget_usd_per_day: budgetUsd,
          allow_private: true,
          accepts_other_key: false,
        },
        baseUrl: options.baseUrl,
        // A further key of the account: the certification used the first.
        apiKey: options.apiKeys[1] ?? '',
        transport: this.#networks.get(name)?.(usual, this.clock) ?? usual,
      })),
      state: state ?? (await this.openState()),
      ssh: sshOf([...this.references.values()]),
      clock,
      transport,
      log: (text) => log.push(text),
      signal: ending.signal,
      abandon: abandoning.signal,
    });
    const left = monitor.run();
    const running: Running = {
      monitor,
      log,
      stop() {
        ending.abort(new Error('the monitor is stopped'));
        return left;
      },
      abandon() {
        ending.abort(new Error('the monitor is stopped'));
        abandoning.abort(new Error('the clean-up is abandoned'));
        return left;
      },
    };
    this.#running.push(running);
    return running;
  }

  days(count: number): Promise<void> {
    return this.clock.sleep(count * MS_PER_DAY);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { abandon } of this.#running) await abandon().catch(() => {});
    for (const state of this.#states) state.close();
    for (const reference of this.references.values()) await reference.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A world with one provider, which ends with the test, and its parts. */
export function worldOf(subject: Partial<WatchedSubject> = {}) {
  const world = new MonitoredWorld([{ id: 'provider', ...subject }]);
  onTestFinished(() => world[Symbol.asyncDispose]());
  const { clock, reference, folder } = world;
  return { world, clock, reference, folder, start: world.start.bind(world) };
}

/** Waits until the provider has a machine. */
export async function untilRented({ clock, reference }: MonitoredWorld): Promise<void> {
  for (let waits = 0; waits < 500 && reference.left().length === 0; waits++)
    await clock.sleep(QUARTER_HOUR_MS);
  if (reference.left().length !== 1) throw new Error('the monitor has not rented one machine');
}

/** A state whose method fails where `failureOf` returns a message for its name. */
export function failing(state: State, failureOf: (method: string) => string | undefined): State {
  return new Proxy(state, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => {
        const message = failureOf(String(name));
        if (message !== undefined) throw new Error(message);
        return member.apply(target, given);
      };
    },
  });
}

export interface Running {
  monitor: Monitor;
  log: readonly string[];
  /** Ends it; returns the number of resources that may still exist. */
  stop(): Promise<number>;
  /** Ends it without a clean-up. */
  abandon(): Promise<number>;
}

export interface Month {
  certificate: Certificate;
  alerts: readonly Alert[];
  /** Resources that may still exist, as the monitor says. */
  left: number;
  /** The ids of what the provider still has. */
  running: readonly string[];
  log: readonly string[];
  /** What the provider really charged, by the start of each UTC day. */
  spent: ReadonlyMap<number, number>;
}

/** Watches one provider for some days of virtual time. */
export async function watchFor(
  days: number,
  subject: WatchedSubject,
  given: Parameters<MonitoredWorld['start']>[0] = {},
): Promise<Month> {
  await using world = new MonitoredWorld([subject]);
  const state = await world.openState();
  const { monitor, log, stop } = await world.start({ state, ...given });
  await world.days(days);
  const [certificate] = monitor.certificates();
  if (certificate === undefined) throw new Error('there is a provider');
  const left = await stop();
  const { reference, clock } = world;
  return {
    certificate,
    alerts: state.unsentAlerts(),
    left,
    running: reference.left(),
    log,
    spent: spendByDay(reference, clock.wall()),
  };
}

const noTransport: Transport = {
  send: async () => ({ failure: 'dns', message: 'there is no webhook', totalMs: 0 }),
  roundTripMs: async () => undefined,
  close: async () => {},
};

/** Logs in to whichever reference has a machine at the port. */
function sshOf(references: readonly Reference[]): SshClient {
  const [first] = references;
  if (first === undefined) throw new Error('there is no provider to watch');
  return {
    newKeyPair: first.ssh.newKeyPair,
    async login(login) {
      for (const { ssh } of references) {
        const outcome = await ssh.login(login);
        if (outcome.rung !== 'connect') return outcome;
      }
      return first.ssh.login(login);
    },
  };
}

export function spendByDay({ rented }: Reference, until: number): Map<number, number> {
  const days = new Map<number, number>();
  for (const { pricePerHour, from, to = until } of rented())
    for (let day = dayOf(from); day < to; day += MS_PER_DAY) {
      const hours = (Math.min(to, day + MS_PER_DAY) - Math.max(from, day)) / 3_600_000;
      days.set(day, (days.get(day) ?? 0) + hours * pricePerHour);
    }
  return days;
}
