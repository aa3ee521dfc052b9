import { toInstance } from '../../../src/orchestrator/instances/transition.ts';
import type { InstanceRecord, VolumeRecord } from '../../../src/orchestrator/model/records.ts';
import { hold } from '../../kernel/violation.ts';
import type { Reply } from '../workload/clients.ts';

/** O: "within seconds". How old a read may be where another process wrote. */
export const STALE_MS = 5_000;
/** For how long a revoked key may still be accepted. */
const REVOKED_MS = 5_000;

const ONE = /^\/v1\/instances\/([^/?]+)$/;

export function polledId({ method, path }: Pick<Reply, 'method' | 'path'>): string | undefined {
  return method === 'GET' ? ONE.exec(path)?.[1] : undefined;
}

/** I8, I9: 404 means that the resource is gone, or another tenant's. `row`: its newest state. */
export function absenceIsTrue(
  reply: Reply,
  row: { accountId: string; isGone: boolean } | undefined,
  accountId: string,
): void {
  // The 404 of an attach may be about the instance that its body names.
  if (reply.status !== 404 || reply.path.endsWith('/attach')) return;
  const isTrue = row === undefined || row.accountId !== accountId || row.isGone;
  hold('I8', isTrue, () => `${reply.method} ${reply.path} is 404, and it lives`, [reply.path.slice(-40)]);
}

/** I9: what a 201 promised is committed. */
export function createdIsKept(reply: Reply, row: { id: string } | undefined): void {
  if (reply.status !== 201) return;
  hold('I9', row !== undefined, () => `a 201 without a row: ${reply.text.slice(0, 200)}`);
}

interface Shown {
  id: string;
  status: string;
  updated_at: string;
}

/** I5, I11: an instance is shown in a state that it had within the last seconds. `known`: those states. */
export function isToldAsItWas(reply: Reply, shown: Shown, known: readonly InstanceRecord[]): void {
  const isKnown = known.some((record) => {
    const { status, updated_at } = toInstance(record);
    return status === shown.status && updated_at === shown.updated_at;
  });
  hold(
    'I5',
    isKnown,
    () =>
      `${reply.method} ${reply.path} told ${shown.id} as ${shown.status} of ${shown.updated_at}; it was ${known.map(({ status, updatedAt }) => `${status} of ${new Date(updatedAt).toISOString()}`).join(', then ')}`,
    [shown.id],
  );
}

/** I5, I11: {@link isToldAsItWas}, of a volume. */
export function volumeIsToldAsItWas(
  reply: Reply,
  shown: { id: string; status: string },
  known: readonly VolumeRecord[],
): void {
  const isKnown = known.some(({ status, deletedAt }) => deletedAt === null && status === shown.status);
  hold(
    'I5',
    isKnown,
    () =>
      `${reply.path} told ${shown.id} as ${shown.status}; it was ${known.map(({ status, deletedAt }) => (deletedAt === null ? status : 'gone')).join(', then ')}`,
    [shown.id],
  );
}

/** I8: a list has every instance that existed all the while. */
export function listIsWhole(reply: Reply, ids: ReadonlySet<string>, lived: readonly string[]): void {
  const missing = lived.find((id) => !ids.has(id));
  hold('I8', missing === undefined, () => `${reply.path} leaves out ${missing}`, [missing ?? '']);
}

/** I18: a reply names nothing of another tenant. `owner` of an id; undefined: nobody's. */
export function tellsNothingOfOthers(
  reply: Reply,
  accountId: string,
  owner: (id: string) => string | undefined,
): void {
  for (const [id] of reply.text.matchAll(/\b(?:inst|vol)-[0-9a-f]{32}\b/g)) {
    const holder = owner(id);
    hold(
      'I18',
      holder === undefined || holder === accountId,
      () => `${reply.path} tells ${reply.tenant} of ${id}`,
      [id],
    );
  }
  const other = reply.tenant === 'alpha' ? 'beta' : 'alpha';
  hold('I18', !reply.text.includes(`${other}-`), () => `${reply.path} tells ${reply.tenant} of ${other}`);
}

/** I19: every server refuses a revoked key within seconds, and none refuses a valid key. */
export function keysAreTaken(reply: Reply, key: { validFrom: number; revokedAt: number | undefined }): void {
  const isRefused = reply.status === 401;
  const { validFrom, revokedAt } = key;
  if (revokedAt === undefined || reply.arrivedAt < revokedAt) {
    const isEarly = reply.sentAt < validFrom;
    hold('I19', !isRefused || isEarly, () => `a valid key of ${reply.tenant} was refused`);
    return;
  }
  hold(
    'I19',
    isRefused || reply.status >= 500 || reply.sentAt <= revokedAt + REVOKED_MS,
    () => `a key of ${reply.tenant} was taken ${reply.sentAt - revokedAt} ms after it was revoked`,
  );
}

/** I16: one ETag stands for one body, and one body has one ETag. */
export class Validators {
  readonly #bodies = new Map<string, string>();
  readonly #etags = new Map<string, string>();

  check({ method, path, status, etag, text }: Reply): void {
    if (method !== 'GET' || status !== 200 || etag === null) return;
    const [body, known] = [this.#bodies.get(`${path} ${etag}`), this.#etags.get(`${path} ${text}`)];
    hold('I16', body === undefined || body === text, () => `${path}: one ETag, two bodies`, [
      path.slice(-40),
    ]);
    hold('I16', known === undefined || known === etag, () => `${path}: one body, two ETags`, [
      path.slice(-40),
    ]);
    this.#bodies.set(`${path} ${etag}`, text);
    this.#etags.set(`${path} ${text}`, etag);
  }
}

interface Offered {
  id: string;
  available: boolean;
  regions: string[];
}

/** I17: no offer disappears, /availability has only available offers, and every region is in the catalog. */
export function offersAreWhole(
  { path, body }: Reply,
  known: { offers: ReadonlySet<string>; regions: ReadonlySet<string> },
): void {
  const { configurations } = body as { configurations: Offered[] };
  const foreign = configurations.find(
    ({ id, regions }) => !known.offers.has(id) || regions.some((region) => !known.regions.has(region)),
  );
  hold('I17', foreign === undefined, () => `${path} tells of ${foreign?.id} in ${foreign?.regions}`);
  if (path.startsWith('/v1/configurations')) {
    hold('I17', configurations.length === known.offers.size, () => `${path} leaves out an offer`);
    return;
  }
  const sold = configurations.find(({ available, regions }) => !available || regions.length === 0);
  hold('I17', sold === undefined, () => `${path} offers ${sold?.id}, which is not available`);
}
