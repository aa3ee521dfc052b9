import { z } from 'zod';
import { NoRoomForMark } from '../../ports/errors.ts';
import { markOf } from '../model/marks.ts';
import type { WriterMarks } from '../model/platform-driver.ts';
import { answerInTime } from './call-platform.ts';
import type { Calling, Facts, Recording } from './context.ts';
import type { PlatformProblem } from './platform-health.ts';
import type { Judge } from './shared-listing.ts';

/** The mark on the platform: the epoch of the last writer, and who it is. */
const markSchema = z.object({ epoch: z.int(), by: z.string(), at: z.string() });
type Mark = z.infer<typeof markSchema>;
const NONE: Mark = { epoch: 0, by: '', at: '' };
/** Longest name of a writer, in characters. */
const MAX_NAME = 100;

const UNMARKED =
  'the platform has no room for the mark of this server: a second server with a copy of this database would not be noticed. ' +
  'Make room for it, such as in the quota';

/** The lower bits of an epoch are random: copies of one database never draw the same one. */
const RANDOM_PART = 2 ** 24;

type Deps = Recording &
  Pick<Calling, 'driver' | 'installationId'> &
  Pick<Facts, 'sightings'> & {
    /** The name of this server for operators. */
    by: string;
    /** Whether the database was restored and is not reconciled with the platform yet. */
    isRestored: () => Promise<boolean>;
  };

/**
 * Finds out that a server with another copy of this database writes to the platform. Each process draws a higher epoch,
 * and stores it in the database, then on the platform. So an epoch on the platform that is higher than that of the
 * database was drawn from another copy. A restored database is behind the platform, too: it draws the next epoch.
 */
export class WriterMark {
  readonly #deps: Deps;
  /** The epoch that this process drew. 0 before. */
  #drawn = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Judges only listings that no other writer can have influenced: the mark is read after the listing. */
  guard<T>(judge: Judge<T>): Judge<T> {
    const { health, sightings, driver } = this.#deps;
    const { writer } = driver;
    if (writer === undefined) return judge;
    return async (listing, begunAt) => {
      const problem = listing.answer === 'listed' ? await this.#check(writer) : undefined;
      if (listing.answer === 'listed') sightings.isTaken = problem?.kind === 'taken';
      if (problem === undefined) return judge(listing, begunAt);
      await health.reportProblem(problem, begunAt);
      return false;
    };
  }

  /** Why this server may not write to the platform. Rejects if the store does. */
  async #check(writer: WriterMarks): Promise<PlatformProblem | undefined> {
    const found = await answerInTime(
      this.#deps,
      () => writer.read(this.#key),
      (texts) => (texts.length === 0 ? [NONE] : texts.map(toMark)),
    );
    if ('problem' in found)
      return { kind: 'down', problem: `the writer's mark cannot be read: ${found.problem}` };
    const last = found.value.reduce((one, other) => (other.epoch > one.epoch ? other : one), NONE);
    // Read after the mark: another server of this database stores its epoch here first.
    const epoch = await this.#own();
    const isBehind = last.epoch > epoch && (this.#drawn > 0 || !(await this.#deps.isRestored()));
    if (isBehind) return { kind: 'taken', problem: `it is ${nameOf(last)}` };
    const own = this.#drawn > 0 ? epoch : await this.#draw(last);
    if (found.value.some((mark) => mark.epoch < own)) return this.#write(writer, own);
    this.#reportRoom();
    return undefined;
  }

  async #own(): Promise<number> {
    const { store, platform } = this.#deps;
    const mark = markOf(platform, 'writer_epoch');
    const stored = (await store.read.marks.get(mark)) ?? 0;
    if (stored >= this.#drawn) return stored;
    // A failover of the database has lost it.
    await store.transact(({ marks }) => marks.put(mark, this.#drawn));
    return this.#drawn;
  }

  async #draw(last: Mark): Promise<number> {
    const { store, platform, random, log } = this.#deps;
    const mark = markOf(platform, 'writer_epoch');
    const drawn = await store.transact(async ({ marks }) => {
      const before = Math.max(last.epoch, (await marks.get(mark)) ?? 0);
      const next = (Math.floor(before / RANDOM_PART) + 1) * RANDOM_PART;
      const epoch = next + Math.floor(random.next() * RANDOM_PART);
      await marks.put(mark, epoch);
      return epoch;
    });
    this.#drawn = drawn;
    if (last.epoch > 0)
      log.info(
        { last: nameOf(last) },
        'this server takes the platform over: if the last writer still runs with another copy of the database, it stops there',
      );
    return drawn;
  }

  async #write(writer: WriterMarks, epoch: number): Promise<PlatformProblem | undefined> {
    const { clock, by } = this.#deps;
    const mark: Mark = { epoch, by: by.slice(0, MAX_NAME), at: new Date(clock.now()).toISOString() };
    const write = () =>
      writer.write(this.#key, JSON.stringify(mark)).catch((error) => {
        if (error instanceof NoRoomForMark) return error.message;
        throw error;
      });
    const answer = await answerInTime(this.#deps, write, (noRoom) => noRoom ?? undefined);
    if ('problem' in answer)
      return { kind: 'down', problem: `the writer's mark cannot be written: ${answer.problem}` };
    this.#reportRoom(answer.value);
    return undefined;
  }

  /** `detail`: why there is no room for the mark. */
  #reportRoom(detail?: string): void {
    const { alarms, platform, log } = this.#deps;
    const alarm = { kind: 'platform_unmarked', subject: platform } as const;
    if (detail === undefined) alarms.end(alarm);
    else alarms.raise({ ...alarm, platform, text: UNMARKED, detail, fields: { detail } }, log);
  }

  get #key(): string {
    return `${this.#deps.installationId}-${this.#deps.platform}`;
  }
}

/** A text that is no mark is replaced. */
function toMark(text: string): Mark {
  try {
    return markSchema.parse(JSON.parse(text));
  } catch {
    return NONE;
  }
}

function nameOf({ by, at }: Mark): string {
  return `${by}, since ${at}`;
}
