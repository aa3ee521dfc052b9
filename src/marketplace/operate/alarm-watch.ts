import type { Alarms } from '../../operator-kit/alarms/alarms.ts';
import { checkDisk } from '../../operator-kit/alarms/disk.ts';
import { type Clock, DAY_MS, type Timer } from '../../ports/clock.ts';
import { StoreUnavailable } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { AlarmKind } from '../model/alarm.ts';
import type { Store } from '../model/store.ts';
import type { Providers } from '../providers/provider.ts';
import type { ProviderWorkers } from '../sync/provider-workers.ts';
import { readVerdict } from './views/books.ts';

const EVERY_MS = 30_000;
/** A provider is silent after several failed reads of its catalog, and its calls fail after as long. */
const SILENT_MS = 5 * 60_000;
const MAIL_LATE_MS = 30 * 60_000;
/** Billing runs every 30 seconds. */
const BILLING_LATE_MS = 15 * 60_000;
/** More machines than usually boot at once. */
const MOST_UNREACHED = 5;

interface Deps {
  store: Pick<Store, 'read'>;
  clock: Clock;
  log: Pick<Log, 'warn'>;
  alarms: Alarms<AlarmKind>;
  providers: Pick<Providers, 'ids' | 'get'>;
  workers: Pick<ProviderWorkers, 'of'>;
  diskRoom?: (() => Promise<{ free: number; size: number } | undefined>) | undefined;
}

/** Raises and ends the alarms of the marketplace. It looks at what is stored, and at the calls of this server. */
export class AlarmWatch {
  readonly #deps: Deps;
  readonly #startedAt: number;
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
  }

  start(): void {
    if (this.#isStopped) return;
    this.#timer = this.#deps.clock.setTimer(EVERY_MS, () => {
      this.#running = this.run();
      void this.#running.then(() => this.start());
    });
  }

  /** Stores the last changes. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#running;
    await this.#deps.alarms.sync();
    await this.#deps.alarms.close();
  }

  /** Runs one round. Never rejects. */
  async run(): Promise<void> {
    const { alarms, log, diskRoom } = this.#deps;
    try {
      this.#checkProviders();
      await this.#checkCounts();
      await this.#checkMailAndBooks();
      const room = await diskRoom?.();
      if (room !== undefined) checkDisk(alarms, room);
    } catch (err) {
      if (!(err instanceof StoreUnavailable)) log.warn({ err }, 'the alarms could not be checked; retrying');
    }
    await alarms.sync();
  }

  #checkProviders(): void {
    const { alarms, providers, workers, clock } = this.#deps;
    // A provider may have left the configuration since.
    for (const { kind, subject } of alarms.listOpen())
      if (
        (kind === 'provider_silent' || kind === 'provider_calls_failing') &&
        !providers.ids().includes(subject)
      )
        alarms.end({ kind, subject });
    for (const id of providers.ids()) {
      const heardAt = providers.get(id)?.catalog.refreshedAt ?? null;
      const isSilent = clock.now() - (heardAt ?? this.#startedAt) > SILENT_MS;
      // A catalog that was never read may be the open alarm of an earlier process.
      if (isSilent || heardAt !== null)
        this.#set(
          isSilent,
          { kind: 'provider_silent', subject: id },
          'the catalog of the provider cannot be read: its offers are not sold. Check base_url, the key and the network with `berth marketplace providers check`',
        );
      const worker = workers.of(id);
      const calls = { kind: 'provider_calls_failing', subject: id } as const;
      // Only the server that calls the provider knows whether its calls fail.
      if (worker?.isActive !== true) {
        alarms.forget(calls);
        continue;
      }
      const failing = [...worker.failingMs].filter(([, ms]) => ms > SILENT_MS).map(([problem]) => problem);
      this.#set(
        failing.length > 0 && !isSilent,
        calls,
        'calls about machines of the provider fail: what runs there is neither confirmed nor changed',
        failing.join(', '),
      );
    }
  }

  /** Conditions that the database counts by provider. */
  async #checkCounts(): Promise<void> {
    const { read } = this.#deps.store;
    const [held, sizes, unproved] = await Promise.all([
      read.losses.countHeld(),
      read.volumes.countOfOtherSize(),
      read.deployments.countUnproved(),
    ]);
    this.#setCounts(
      'losses_held',
      held,
      'more resources than usual are answered with 404: they are held until an operator decides. Check the key and base_url; if they are really lost: `berth marketplace losses accept`',
    );
    this.#setCounts(
      'volume_size_differs',
      sizes,
      'the provider shows another size of volumes than was asked for',
    );
    this.#setCounts(
      'machines_not_reached',
      unproved.filter(({ count }) => count > MOST_UNREACHED),
      'many machines are ONLINE at the provider and accept no SSH login: they are not sold as running',
    );
  }

  async #checkMailAndBooks(): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const [mails, givenUp, verdict, [due]] = await Promise.all([
      store.read.mail.waiting(),
      store.read.mail.countGivenUpSince(now - DAY_MS),
      readVerdict(store.read),
      store.read.teams.due({ now, limit: 1 }),
    ]);
    const { oldestCreatedAt } = mails;
    this.#set(
      oldestCreatedAt !== null && now - oldestCreatedAt > MAIL_LATE_MS,
      { kind: 'mail_overdue', subject: 'mail' },
      'mails wait to be sent: see `berth marketplace mail ls --state waiting`, and check `mail` in the configuration',
    );
    this.#set(
      givenUp > 0,
      { kind: 'mail_given_up', subject: 'mail' },
      'mails were given up after three days: see `berth marketplace mail ls --state given_up`',
      `${givenUp} in 24 hours`,
    );
    const findings = verdict?.counts['findings'] ?? 0;
    this.#set(
      findings > 0,
      { kind: 'ledger_wrong', subject: 'ledger' },
      'the last `berth marketplace verify-ledger` found errors in the books',
      `${findings} findings`,
    );
    this.#set(
      due !== undefined && due.at <= now - BILLING_LATE_MS,
      { kind: 'billing_late', subject: 'ledger' },
      'usage is not posted to the books: no server runs the billing job, or it fails; see the log',
    );
  }

  #setCounts(kind: AlarmKind, counts: readonly { providerId: string; count: number }[], text: string): void {
    const { alarms } = this.#deps;
    const wrong = counts.filter(({ count }) => count > 0);
    for (const { providerId, count } of wrong)
      this.#set(true, { kind, subject: providerId }, text, `${count} now`);
    const subjects = new Set(wrong.map(({ providerId }) => providerId));
    for (const { subject } of alarms
      .listOpen()
      .filter((one) => one.kind === kind && !subjects.has(one.subject)))
      alarms.end({ kind, subject });
  }

  #set(isWrong: boolean, alarm: { kind: AlarmKind; subject: string }, text: string, detail?: string): void {
    const { alarms, providers } = this.#deps;
    if (!isWrong) {
      alarms.end(alarm);
      return;
    }
    const isOfProvider = providers.ids().includes(alarm.subject);
    alarms.raise({
      ...alarm,
      platform: isOfProvider ? alarm.subject : null,
      text,
      ...(detail !== undefined && { detail }),
    });
  }
}
