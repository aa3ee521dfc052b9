import { ApiError } from '../../contract/errors.ts';
import type { Reader, Store } from '../model/store.ts';
import type { Sightings } from './sightings.ts';

const RETRY_AFTER_SECONDS = 2;
/** The format of the ids that Berth issues. */
export const ISSUED_ID = /^(?:inst|vol)-[0-9a-f]{32}$/;

/**
 * Returns the store for requests: a missing row is 503, not 404, unless absence is proved. O: a client reads a 404 as
 * DESTROYED. Absence is not proved while a platform shows the id without a row. After a start it is not proved until
 * all platforms were listed completely, or `restoreDoubtMs` has passed. `others` are platforms that another server
 * compares after a restore.
 */
export function guardNotFound(
  store: Store,
  sightings: readonly Sightings[],
  others: readonly string[] = [],
): Store {
  const guard = <Reads extends Guarded>(reads: Reads) => guardReads(reads, sightings, others);
  return { ...store, read: guard(store.read), transact: (body) => store.transact((tx) => body(guard(tx))) };
}

type Guarded = Pick<Reader, 'instances' | 'volumes' | 'marks' | 'sightings'>;

function guardReads<Reads extends Guarded>(
  reads: Reads,
  platforms: readonly Sightings[],
  others: readonly string[],
): Reads {
  const { instances, volumes, marks, sightings } = reads;
  const isCompared = async (): Promise<boolean> => {
    for (const other of others) if ((await marks.get(`restored_from:${other}`)) !== null) return false;
    return true;
  };
  const isProved = (id: string): boolean =>
    platforms.every((one) => one.isAbsenceProved(id.startsWith('vol-') ? 'volume' : 'instance'));
  /** Checks the proof of absence before it reads the row, so a row that is written in between is found. */
  const byId = async <T>(id: string, read: () => Promise<T | null>): Promise<T | null> => {
    const isProvedBefore = !ISSUED_ID.test(id) || (isProved(id) && (await isCompared()));
    const found = await read();
    if (found !== null) return found;
    if (!isProvedBefore) throw uncertain();
    if (ISSUED_ID.test(id) && (await sightings.hasNoRow(id))) throw unavailable(ROW_LOST);
    // The row may have been restored after the first read, and its sighting closed.
    return ISSUED_ID.test(id) ? read() : null;
  };
  const listed = async <T>(read: () => Promise<T>): Promise<T> => {
    const isComplete = platforms.every((one) => one.isListComplete) && (await isCompared());
    const found = await read();
    if (!isComplete) throw uncertain();
    return found;
  };
  const guarded: Partial<Guarded> = {
    instances: {
      ...instances,
      byId: (id) => byId(id, () => instances.byId(id)),
      page: (filter) => listed(() => instances.page(filter)),
      list: (filter) => listed(() => instances.list(filter)),
    },
    volumes: { ...volumes, byId: (id) => byId(id, () => volumes.byId(id)) },
  };
  return { ...reads, ...guarded };
}

const ROW_LOST = 'The platform has this resource, and its record is lost; it is being restored. Try again.';

function unavailable(message: string): ApiError {
  return new ApiError('unavailable', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}

function uncertain(): ApiError {
  return unavailable('The orchestrator has not yet compared its records with the platform; try again.');
}
