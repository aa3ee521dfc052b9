import {
  answerOf,
  type CertificateList,
  cachedFigure,
  orZero,
  ServerMetrics,
  secondsOverdue,
} from '../../http/api/metrics.ts';
import type { Alarms } from '../../operator-kit/alarms/alarms.ts';
import { type Clock, DAY_MS } from '../../ports/clock.ts';
import { activeStatuses } from '../contract/deployment.ts';
import { alarmKinds } from '../model/alarm.ts';
import type { Reader, Store } from '../model/store.ts';
import { readVerdict } from '../operate/views/books.ts';
import type { Providers } from '../providers/provider.ts';
import { providerWideProblems } from '../sync/provider-health.ts';
import type { ProviderWorkers } from '../sync/provider-workers.ts';

interface Deps {
  version: string;
  store: Store;
  clock: Clock;
  providers: Providers;
  workers: Pick<ProviderWorkers, 'of'>;
  writes: { areWritesTaken: boolean };
  diskRoom?: (() => Promise<{ free: number; size: number } | undefined>) | undefined;
  certificates: CertificateList;
  alarms: Pick<Alarms, 'listOpen'>;
}

export class Metrics extends ServerMetrics {
  constructor(deps: Deps) {
    super({
      version: deps.version,
      clock: deps.clock,
      certificates: deps.certificates,
      prefix: 'berth_marketplace',
      requests: 'Requests answered.',
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30],
      hasProcessMetrics: false,
    });
    this.#addStoreMetrics(deps);
    this.#addProviderMetrics(deps);
    this.addAlarmMetrics('berth_marketplace', deps.alarms, alarmKinds);
    this.addDiskMetrics('berth_marketplace', async () => deps.diskRoom?.());
  }

  #addStoreMetrics({ store: { read }, clock, writes }: Deps): void {
    this.gauge(
      'berth_marketplace_store_up',
      'Whether the database answers and takes writes. If not, the metrics counted in it are missing.',
      async () =>
        Number((await answerOf(read.settings.get('installation_id'))) !== undefined && writes.areWritesTaken),
    );
    const countActive = cachedFigure(clock, () => read.deployments.countActive());
    this.gaugeBy(
      'status',
      'berth_marketplace_deployments',
      'Deployments that have not ended, by status.',
      async () =>
        orZero(
          activeStatuses,
          (await countActive())?.map(({ status, count }) => [status, count]),
        ),
    );
    this.#addMailMetrics(read, clock);
    const verdict = cachedFigure(clock, () => readVerdict(read));
    this.gauge(
      'berth_marketplace_ledger_findings',
      'Findings of the last run of `berth marketplace verify-ledger`; NaN: it never ran.',
      async () => (await verdict())?.counts['findings'] ?? Number.NaN,
    );
    this.gauge(
      'berth_marketplace_ledger_verified_seconds',
      'Time since the last run of `berth marketplace verify-ledger`; NaN: it never ran.',
      async () => (clock.now() - Date.parse((await verdict())?.at ?? '')) / 1000,
    );
  }

  #addMailMetrics(read: Reader, clock: Clock): void {
    const waiting = cachedFigure(clock, () => read.mail.waiting());
    const givenUp = cachedFigure(clock, () => read.mail.countGivenUpSince(clock.now() - DAY_MS));
    this.gauge(
      'berth_marketplace_mail_overdue_seconds',
      'Age of the oldest waiting mail. A failed attempt does not reset it.',
      async () => secondsOverdue((await waiting())?.oldestCreatedAt, clock.now()),
    );
    this.gauge(
      'berth_marketplace_mails_waiting',
      'Mails waiting to be sent.',
      async () => (await waiting())?.count ?? Number.NaN,
    );
    this.gauge(
      'berth_marketplace_mails_given_up',
      'Mails given up in the last 24 hours.',
      async () => (await givenUp()) ?? Number.NaN,
    );
  }

  /** Metrics per provider that an operator may have to act on. */
  #addProviderMetrics({ store: { read }, clock, providers, workers }: Deps): void {
    const startedAt = clock.now();
    this.gaugeBy(
      'provider',
      'berth_marketplace_provider_heard_seconds',
      'Time since any server last read the catalog of a provider, or since the start if none did.',
      async () =>
        providers.ids().map((id) => {
          const readAt = providers.get(id)?.catalog.refreshedAt ?? startedAt;
          return [id, (clock.now() - readAt) / 1000];
        }),
    );
    this.gaugeByAll(
      ['provider', 'problem'],
      'berth_marketplace_provider_calls_failing_seconds',
      'Longest time for which all calls about one deployment, or all list calls, have failed, by the last problem; 0: none fail. Each server reports the deployments that it syncs.',
      async () =>
        providers.ids().flatMap((provider) => {
          const failing = workers.of(provider)?.failingMs;
          return providerWideProblems.map((problem) => [
            { provider, problem },
            (failing?.get(problem) ?? 0) / 1000,
          ]);
        }),
    );
    this.gaugeBy(
      'provider',
      'berth_marketplace_provider_synced',
      'Whether this server syncs the deployments and volumes of a provider; of all servers, one does.',
      async () => providers.ids().map((id) => [id, Number(workers.of(id)?.isActive ?? false)]),
    );
    const addCounts = (
      name: string,
      help: string,
      count: () => Promise<{ providerId: string; count: number }[]>,
    ): void => {
      const cached = cachedFigure(clock, count);
      this.gaugeBy('provider', name, help, async () =>
        orZero(
          providers.ids(),
          (await cached())?.map(({ providerId, count: n }) => [providerId, n]),
        ),
      );
    };
    addCounts(
      'berth_marketplace_deployments_waiting_for_ssh',
      'Machines that are ONLINE at their provider but have not accepted an SSH login yet.',
      () => read.deployments.countUnproved(),
    );
    addCounts(
      'berth_marketplace_volumes_of_other_size',
      'Volumes whose provider shows another size than was asked for.',
      () => read.volumes.countOfOtherSize(),
    );
    addCounts(
      'berth_marketplace_losses_held',
      'Deployments and volumes that `berth marketplace losses accept` would end.',
      () => read.losses.countHeld(),
    );
  }
}
