import type { Deps } from '../deps.ts';
import { LeasedJob } from '../leased-job.ts';
import type { Store } from '../ports/store.ts';
import { backInStockMessage } from './messages.ts';
import { queueMail } from './outbox.ts';
import { type Stock, stockOf } from './stock-of.ts';

const EVERY_MS = 60_000;

/** The job that mails those who asked for it when what was sold out can be deployed again (M: Events). */
export class StockAlerts {
  readonly #deps: Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'providers'>;
  readonly #job: LeasedJob;

  constructor(deps: Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'providers'>) {
    this.#deps = deps;
    this.#job = new LeasedJob(deps, {
      name: 'stock-alerts',
      everyMs: EVERY_MS,
      work: (store) => this.#work(store),
    });
  }

  start(): void {
    this.#job.start();
  }

  stop(): Promise<void> {
    return this.#job.stop();
  }

  /** One round, where this process has the lease; it never rejects. */
  run(): Promise<void> {
    return this.#job.run();
  }

  async #work(store: Store): Promise<void> {
    const { providers } = this.#deps;
    for (const alert of await store.read.stockAlerts.list()) {
      const stock = stockOf(providers, alert);
      const isNews = stock !== null && (stock.regions.length === 0 ? !alert.wasSoldOut : alert.wasSoldOut);
      if (isNews) await this.#tell(store, alert.id, stock);
    }
  }

  async #tell(store: Store, alertId: string, { offer, regions }: Stock): Promise<void> {
    const { clock } = this.#deps;
    await store.transact(async (tx) => {
      const alert = await tx.stockAlerts.byId(alertId);
      const isSoldOut = regions.length === 0;
      if (alert === null || alert.wasSoldOut === isSoldOut) return;
      await tx.stockAlerts.update({ ...alert, wasSoldOut: isSoldOut });
      const user = await tx.users.byId(alert.userId);
      if (isSoldOut || offer === null || user === null) return;
      await queueMail(this.#deps, tx, user, {
        ...{
          class: 'marketing',
          kind: 'back_in_stock',
          dedupeKey: `back_in_stock:${alert.id}:${clock.now()}`,
        },
        ...backInStockMessage(offer, regions),
      });
    });
  }
}
