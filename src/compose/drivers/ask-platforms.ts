import { loadCatalog } from '../../config/load.ts';
import { sellingPlatforms } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import type { Environment } from '../../config/settings.ts';
import { activeCordons, cordonedHosts } from '../../orchestrator/capacity/cordons.ts';
import type { Inventory } from '../../orchestrator/model/inventory.ts';
import type { PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import type { Reader } from '../../orchestrator/model/store.ts';
import type { PlatformFacts } from '../../orchestrator/operate/views/platforms.ts';
import { askInventory } from '../../orchestrator/platform/call-platform.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { callTimeoutMs } from '../../work/lease-time.ts';
import { type ConfiguredDriver, configuredDrivers } from './driver-settings.ts';

/** Time limit of one question. The driver enforces it and names the part that did not answer. */
export const QUESTION_MS = 5_000;
/** Longer than {@link QUESTION_MS}, so that the driver can still report the cause. */
export const ANSWER_MS = QUESTION_MS + 1_000;

/** A platform with the current answers of its driver. */
export interface AskedPlatform extends PlatformFacts {
  /** Why its hosts are unknown. Undefined if they are known. */
  problem: string | undefined;
  /** Where else to find its hosts if the driver could not be opened here. */
  advice?: string;
}

/** A running server may have locked the driver. Only the driver knows the cause. */
const SEE_CONSOLE = 'A running server may have locked the driver: see the page Platforms of its console.';

/** Opens each driver in this process and asks for its hosts, concurrently. No server needs to run. */
export async function askPlatforms(
  config: Config,
  read: Pick<Reader, 'cordons'>,
  ports: { env: Environment; clock: Clock; log: Log },
): Promise<Map<string, AskedPlatform>> {
  const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
  const cordons = await activeCordons(read, ports.clock.now());
  const waiting = {
    clock: ports.clock,
    options: { callTimeoutMs: callTimeoutMs(config.reconcile.lease_s * 1000) },
  };
  const askOne = async (one: ConfiguredDriver): Promise<AskedPlatform> => {
    const driver = one.definition.name;
    let open: PlatformDriver;
    try {
      open = await openInTime(one, ports.clock);
    } catch (error) {
      return { driver, problem: messageOf(error), advice: SEE_CONSOLE };
    }
    const inventory = await count(open, waiting, cordonedHosts(cordons, one.platform)).catch(
      (error: unknown): Inventory => ({ answer: 'unknown', reason: messageOf(error) }),
    );
    if (inventory === undefined) return { driver, problem: 'its driver does not count units' };
    if (inventory.answer === 'unknown') return { driver, problem: inventory.reason };
    const freeUnits = new Map<string, number>();
    for (const { offerId, units } of inventory.free)
      freeUnits.set(offerId, (freeUnits.get(offerId) ?? 0) + units);
    const { hosts, limitedBy = [] } = inventory;
    const problem = hosts === undefined ? 'its driver does not list hosts' : undefined;
    return { driver, problem, inventory: { freeUnits, hosts: hosts ?? [], limitedBy, ageMs: 0 } };
  };
  const drivers = configuredDrivers(config, { ...ports, catalog });
  const answers = await Promise.all(drivers.map(askOne));
  return new Map(drivers.map(({ platform }, index) => [platform, answers[index] as AskedPlatform]));
}

/** @throws {Fatal | Late} */
async function openInTime(
  { definition, options, setting }: ConfiguredDriver,
  clock: Clock,
): Promise<PlatformDriver> {
  const over = new AbortController();
  const asking = { withinMs: QUESTION_MS, signal: over.signal };
  const opening = definition.open(options, { ...setting, asking });
  try {
    return await inTime(clock, ANSWER_MS, opening);
  } catch (error) {
    over.abort();
    opening.then((late) => late.close()).catch(() => {});
    throw error;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Counts the hosts. Returns undefined if the driver does not count them. */
async function count(
  driver: PlatformDriver,
  waiting: Parameters<typeof askInventory>[0],
  avoidHosts: readonly string[],
): Promise<Inventory | undefined> {
  try {
    const { inventory } = driver;
    return inventory && (await askInventory(waiting, () => inventory.call(driver, avoidHosts)));
  } finally {
    await driver.close();
  }
}

export class Late extends Error {
  override readonly name = 'Late';
}

/** @throws {Late} */
export async function inTime<T>(clock: Clock, withinMs: number, answer: Promise<T>): Promise<T> {
  answer.catch(() => {});
  const { promise, reject } = Promise.withResolvers<never>();
  const late = new Late(`no answer within ${Math.max(0, Math.round(withinMs / 1000))} s`);
  const timer = clock.setTimer(withinMs, () => reject(late));
  try {
    return await Promise.race([answer, promise]);
  } finally {
    timer.cancel();
  }
}
