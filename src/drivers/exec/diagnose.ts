import { counted } from '../../contract/counted.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { Clock } from '../../ports/clock.ts';
import { broken, type Diagnosis, ok, warning } from '../../ports/diagnosis.ts';
import type { Channel } from './channel.ts';
import { messageOf } from './errors.ts';
import { createPlatform } from './open.ts';
import type { Capabilities, Info } from './protocol/objects.ts';

export interface Connected {
  channel: Channel;
  info: Info;
}

interface Deps {
  subject: string;
  connect: () => Promise<Connected>;
  catalog: Catalog;
  clock: Clock;
  timeoutMs: number;
}

const LOOK_AT_STDERR = 'Run `berth driver test` and read the standard error output of the driver.';

/** Asks the driver for its capabilities, machines, volumes and units, and measures the response times. Changes nothing. */
export async function* diagnose({
  subject,
  connect,
  catalog,
  clock,
  timeoutMs,
}: Deps): AsyncGenerator<Diagnosis> {
  const startedAt = clock.now();
  let connected: Connected;
  try {
    connected = await connect();
  } catch (error) {
    yield notOpened(subject, error);
    return;
  }
  const { channel, info } = connected;
  try {
    const { name, version } = info;
    const ms = Math.round(clock.now() - startedAt);
    yield ok(subject, `it is ${[name, version].filter(Boolean).join(' ')} and answered info in ${ms} ms`);
    yield ok(`${subject}: capabilities`, sentenceOf(info.capabilities));
    const quiet = { debug: ignore, info: ignore, warn: ignore, error: ignore };
    const driver = createPlatform(channel, { info, catalog, timeoutMs, log: quiet });
    const { volumes } = driver;
    const lists = [
      { method: 'list', kind: 'machine', list: () => driver.list() },
      ...(volumes ? [{ method: 'volumes.list', kind: 'volume', list: () => volumes.list() }] : []),
    ];
    for (const { method, kind, list } of lists)
      yield await timed(`${subject}: ${method}`, clock, timeoutMs, async () => {
        const listing = await list();
        return listing.answer === 'listed'
          ? `it has ${counted(listing.items.length, kind)} of Berth`
          : { problem: listing.reason };
      });
    if (driver.inventory === undefined) return;
    const { inventory: count } = driver;
    yield await timed(`${subject}: inventory`, clock, timeoutMs, async () => {
      const inventory = await count.call(driver);
      if (inventory.answer === 'unknown') return { problem: inventory.reason };
      const free = inventory.free.map(
        ({ offerId, datacenter, units }) => `${units} of ${offerId} in ${datacenter}`,
      );
      return `free units: ${free.join(', ') || 'none'}`;
    });
  } finally {
    await channel.close();
  }
}

const ignore = (): void => undefined;

/**
 * The finding for a driver that could not be opened. A driver that allows one process waits for the process of `berth
 * serve`.
 */
function notOpened(subject: string, error: unknown): Diagnosis {
  const finding = messageOf(error);
  const isSilent = / did not answer info within /.test(finding);
  return isSilent
    ? warning(
        subject,
        finding,
        `Ignore this if the driver allows one process at a time and \`berth serve\` runs it now. Otherwise:  ${LOOK_AT_STDERR}`,
      )
    : broken(subject, finding, LOOK_AT_STDERR);
}

function sentenceOf(capabilities: Capabilities): string {
  const entries = Object.entries(capabilities).map(([name, value]) => `${name} ${String(value)}`);
  return entries.join(', ');
}

/** Runs `look` and reports its result with the share of the time limit that it took. */
async function timed(
  subject: string,
  clock: Clock,
  timeoutMs: number,
  look: () => Promise<string | { problem: string }>,
): Promise<Diagnosis> {
  const askedAt = clock.now();
  const found = await look();
  if (typeof found !== 'string') return broken(subject, found.problem, LOOK_AT_STDERR);
  const ms = Math.round(clock.now() - askedAt);
  if (ms * 2 <= timeoutMs) return ok(subject, `${found}; that took ${ms} ms`);
  return warning(
    subject,
    `${found}; that took ${ms} of at most ${timeoutMs} ms`,
    'Make the driver answer faster, or raise `timeout_s`.',
  );
}
