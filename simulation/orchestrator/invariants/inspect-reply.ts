import type { Catalog } from '../../../src/orchestrator/catalog/catalog.ts';
import { assertKeepsContract } from '../../../test/support/http/contract.ts';
import { hold, Violation } from '../../kernel/violation.ts';
import type { Reply } from '../workload/clients.ts';
import type { Key, Tenant } from '../workload/tenant.ts';
import type { History } from './history.ts';
import {
  absenceIsTrue,
  createdIsKept,
  isToldAsItWas,
  keysAreTaken,
  listIsWhole,
  offersAreWhole,
  polledId,
  STALE_MS,
  tellsNothingOfOthers,
  type Validators,
  volumeIsToldAsItWas,
} from './replies.ts';

const ONE_VOLUME = /^\/v1\/volumes\/[^/?]+$/;
const INSTANCE = /^\/v1\/(?:x\/)?instances\/([^/?]+)/;
const VOLUME = /^\/v1\/(?:x\/)?volumes\/([^/?]+)/;

/** A reply, and what it is held against. */
interface Inspected {
  reply: Reply;
  tenant: Tenant;
  key: Key;
  validators: Validators;
  catalog: Catalog;
}

/** Checks every invariant about replies. @throws {Violation} */
export function inspectReply(history: History, { reply, tenant, key, validators, catalog }: Inspected): void {
  keysAreTaken(reply, key);
  keepsContract(reply);
  if (reply.status === 401) return;
  absenceIsTrue(reply, askedFor(history, reply.path), tenant.accountId);
  tellsNothingOfOthers(
    reply,
    tenant.accountId,
    (id) => (history.instance(id) ?? history.volume(id))?.accountId,
  );
  validators.check(reply);
  if (reply.status === 201) {
    const { id } = reply.body as { id: string };
    createdIsKept(reply, history.instance(id) ?? history.volume(id));
  }
  if (reply.status !== 200) return;
  const id = polledId(reply);
  if (id !== undefined) toldAsItWas(history, reply, [reply.body as { id: string }]);
  if (reply.method === 'GET' && ONE_VOLUME.test(reply.path)) {
    const shown = reply.body as { id: string; status: string };
    const states = history.currentVolume(shown.id, reply.sentAt - STALE_MS, reply.arrivedAt);
    volumeIsToldAsItWas(reply, shown, states);
  }
  if (reply.path.startsWith('/v1/instances?') || (reply.method === 'GET' && reply.path === '/v1/instances'))
    inspectList(history, reply, tenant);
  if (/^\/v1\/(configurations|availability)/.test(reply.path)) {
    const known = { offers: new Set(catalog.offers.keys()), regions: new Set(catalog.regions.keys()) };
    offersAreWhole(reply, known);
  }
}

function inspectList(history: History, reply: Reply, tenant: Tenant): void {
  const { instances } = reply.body as { instances: { id: string }[] };
  toldAsItWas(history, reply, instances);
  const lived = history.instances().filter((record) => {
    if (record.accountId !== tenant.accountId || record.status === 'DESTROYED') return false;
    const [first] = history.versions(record.id);
    return first !== undefined && first.at < reply.sentAt;
  });
  listIsWhole(
    reply,
    new Set(instances.map(({ id }) => id)),
    lived.map(({ id }) => id),
  );
}

function toldAsItWas(history: History, reply: Reply, shown: readonly { id: string }[]): void {
  for (const instance of shown) {
    const states = history.current(instance.id, reply.sentAt - STALE_MS, reply.arrivedAt);
    isToldAsItWas(reply, instance as Parameters<typeof isToldAsItWas>[1], states);
  }
}

function askedFor(history: History, path: string): Parameters<typeof absenceIsTrue>[1] {
  const instance = history.instance(INSTANCE.exec(path)?.[1] ?? '');
  if (instance !== undefined)
    return { accountId: instance.accountId, isGone: instance.status === 'DESTROYED' };
  const volume = history.volume(VOLUME.exec(path)?.[1] ?? '');
  return volume === undefined
    ? undefined
    : { accountId: volume.accountId, isGone: volume.deletedAt !== null };
}

/** I30: every reply is one that the published document allows. */
function keepsContract({ method, path, status, text, contentType }: Reply): void {
  try {
    assertKeepsContract({ method, path: path.replace(/\?.*$/, ''), status, contentType, body: text });
  } catch (error) {
    throw new Violation('I30', error instanceof Error ? error.message : String(error));
  }
  hold('I30', status !== 500, () => `${method} ${path} is a fault of the server's own`);
}
