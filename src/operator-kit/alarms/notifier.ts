import type { Clock, Timer } from '../../ports/clock.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { StoreUnavailable } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { Alarms } from './alarms.ts';
import { factsOf } from './kind-facts.ts';
import { type AlarmMessage, toMessage } from './message.ts';
import {
  type AlarmKinds,
  type AlarmNotice,
  type AlarmReader,
  type AlarmRecord,
  type DueTimes,
  type NoticeKey,
  type NoticeReader,
  type NoticeWriter,
  type Severity,
  severities,
} from './model.ts';

const EVERY_MS = 5_000;
/** What begins or ends within this time is told in one message. */
const GROUP_MS = 30_000;
/** When another server may send a claimed message. Longer than any call. */
const CLAIM_MS = 120_000;
const FIRST_RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 3_600_000;
/** The attempts of one message take about three hours. Later, it goes with the next message of its route. */
const MAX_ATTEMPTS = 10;
/** After this many attempts, the route itself is an alarm. */
const ATTEMPTS_TO_ALARM = 3;
const KEPT_MS = 7 * DAY_MS;
const MAX_ERROR_LENGTH = 300;

/** Who is told about which alarms, and how. */
export interface AlarmRoute {
  name: string;
  type: 'webhook' | 'slack' | 'email';
  /** The least severity. */
  severity: Severity;
  /** Undefined: all kinds. */
  kinds?: readonly string[] | undefined;
  /** The platforms, or the providers of a marketplace. Undefined: all, and alarms about none. */
  platforms?: readonly string[] | undefined;
  /** @throws if the message was not accepted */
  send(message: AlarmMessage): Promise<void>;
  close(): void | Promise<void>;
}

interface Deps {
  store: {
    read: { alarms: AlarmReader; alarmNotices: NoticeReader };
    transact<T>(body: (tx: { alarmNotices: NoticeWriter }) => Promise<T>): Promise<T>;
  };
  clock: Clock;
  log: Pick<Log, 'warn' | 'error'>;
  alarms: Pick<Alarms<'alarm_route_failing'>, 'raise' | 'end' | 'server'>;
  kinds: AlarmKinds;
  routes: readonly AlarmRoute[];
  /** Returns the alarms that a planned maintenance explains: nobody is told of them before its end. */
  findSilenced?: (alarms: readonly AlarmRecord[]) => Promise<ReadonlySet<AlarmRecord>>;
}

/**
 * Tells people what alarms began and ended. What each route was told is stored: a message is claimed before it is sent,
 * so that of several servers one sends it, and none repeats it after a restart. A crash between the answer of the
 * receiver and the write of that repeats the message once.
 */
export class AlarmNotifier {
  readonly #deps: Deps;
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Without a route, it does nothing. */
  start(): void {
    if (this.#isStopped || this.#deps.routes.length === 0) return;
    this.#timer = this.#deps.clock.setTimer(EVERY_MS, () => {
      this.#running = this.run();
      void this.#running.then(() => this.start());
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#running;
    for (const route of this.#deps.routes) await route.close();
  }

  /** Runs one round. Never rejects. */
  async run(): Promise<void> {
    const { store, clock, log, routes } = this.#deps;
    try {
      await this.#record();
      const due = new Set(await store.read.alarmNotices.dueRoutes(toDue(clock.now())));
      for (const route of routes) if (due.has(route.name) && !this.#isStopped) await this.#tell(route);
    } catch (error) {
      if (!(error instanceof StoreUnavailable))
        log.warn(
          { err: error },
          'the messages about alarms could not be read or stored; retrying in a few seconds',
        );
    }
  }

  /** Stores which routes are to be told of alarms that began or ended since the last round. */
  async #record(): Promise<void> {
    const { store, clock, routes, findSilenced } = this.#deps;
    const now = clock.now();
    const [open, notices] = await Promise.all([store.read.alarms.list(), store.read.alarmNotices.open()]);
    const known = new Set(notices.map(toKey));
    const begun = routes.flatMap(({ name: route }, index) =>
      open
        .filter((alarm) => this.#concerns(index, alarm) && !known.has(toKey({ route, ...alarm })))
        .map((alarm) => ({ route, alarm })),
    );
    const silenced = begun.length === 0 ? undefined : await findSilenced?.(begun.map(({ alarm }) => alarm));
    const told = begun.filter(({ alarm }) => silenced?.has(alarm) !== true);
    const isOpen = new Set(open.map((alarm) => toKey({ ...alarm, route: '' })));
    const over = notices.filter((notice) => !isOpen.has(toKey({ ...notice, route: '' })));
    if (told.length === 0 && over.length === 0) return;
    const groupedUntil = now + GROUP_MS;
    await store.transact(async ({ alarmNotices }) => {
      for (const { route, alarm } of told) await alarmNotices.add(toNotice(route, alarm, groupedUntil));
      for (const notice of over) await alarmNotices.end(notice, { until: now, dueAt: groupedUntil });
      await alarmNotices.deleteEndedBefore(now - KEPT_MS);
    });
  }

  #concerns(index: number, { kind, subject, platform }: AlarmRecord): boolean {
    const { kinds, routes } = this.#deps;
    const route = routes[index];
    if (route === undefined || (kind === 'alarm_route_failing' && subject === route.name)) return false;
    const { severity } = factsOf(kinds, kind);
    return (
      severities.indexOf(severity) <= severities.indexOf(route.severity) &&
      route.kinds?.includes(kind) !== false &&
      (route.platforms === undefined || (platform !== null && route.platforms.includes(platform)))
    );
  }

  /** Sends what is due for a route, as one message. */
  async #tell(route: AlarmRoute): Promise<void> {
    const { store, clock, log, alarms, kinds } = this.#deps;
    const now = clock.now();
    const claim = { route: route.name, ...toDue(now), claimedUntil: now + CLAIM_MS };
    const notices = await store.transact(({ alarmNotices }) => alarmNotices.claim(claim));
    if (notices.length === 0) return;
    const alarm = { kind: 'alarm_route_failing', subject: route.name } as const;
    let lastError: string | null = null;
    try {
      await route.send(toMessage({ route: route.name, server: alarms.server }, kinds, notices));
      alarms.end(alarm);
    } catch (error) {
      lastError = (error instanceof Error ? error.message : String(error)).slice(0, MAX_ERROR_LENGTH);
      const attempts = Math.max(...notices.map((notice) => notice.attempts));
      log.warn({ route: route.name, attempts, cause: lastError }, 'a message about alarms was not accepted');
      const text =
        'messages about alarms are not accepted: check the route in the configuration, then run `alarms test`';
      if (attempts >= ATTEMPTS_TO_ALARM) alarms.raise({ ...alarm, platform: null, text, detail: lastError });
    }
    await store.transact(async ({ alarmNotices }) => {
      for (const notice of notices)
        await alarmNotices.settle(notice, outcomeOf(notice, lastError, clock.now()));
    });
  }
}

/** No message is due later than the longest wait: such a time is from before the clock was set back. */
function toDue(now: number): DueTimes {
  return { now, latest: now + LONGEST_RETRY_MS };
}

function toNotice(route: string, alarm: AlarmRecord, dueAt: number): AlarmNotice {
  const { kind, subject, since, platform, text } = alarm;
  const begun = { until: null, told: 'nothing', dueAt, attempts: 0, lastError: null } as const;
  return { route, kind, subject, since, platform, text, ...begun };
}

function outcomeOf(
  { told, until, attempts }: AlarmNotice,
  lastError: string | null,
  now: number,
): Pick<AlarmNotice, 'told' | 'dueAt' | 'attempts' | 'lastError'> {
  if (lastError === null)
    return { told: until === null ? 'began' : 'ended', dueAt: null, attempts: 0, lastError };
  const waitMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempts - 1));
  return { told, dueAt: attempts < MAX_ATTEMPTS ? now + waitMs : null, attempts, lastError };
}

function toKey({ route, kind, subject, since }: NoticeKey): string {
  return JSON.stringify([route, kind, subject, since]);
}
