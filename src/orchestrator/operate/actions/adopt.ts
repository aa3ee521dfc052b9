import { audit, audited } from '../../../operators/audit.ts';
import type { Actor } from '../../../operators/model.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Log } from '../../../ports/log.ts';
import type { Alarms } from '../../alarms/alarms.ts';
import type { MarkName, Reader, Store } from '../../model/store.ts';
import type { Adopted } from '../../reconciliation/rowless.ts';
import { ActionRefused } from './refused.ts';

/** What an adoption would do, or was asked for. */
export interface Adoption {
  ref: string;
  platform: string | null;
  /** What its alarm says. */
  problem: string;
  effect: string;
  isDone: boolean;
}

interface Deps {
  store: Store;
  clock: Pick<Clock, 'now'>;
}

const EFFECT =
  'within 10 seconds a server reads its note, and where that is whole and ours, the machine is a new instance of its account, ' +
  'under a new id: its old one was answered ERROR, OFFLINE or 404, which is final for its client';

const ADOPTABLE: ReadonlySet<string> = new Set(['orphan_machine', 'row_lost']);

const markOf = (ref: string): MarkName => `adopt_requested:${ref}`;

/**
 * Has a server make a machine a new instance in its account, from the note that it was made with: one whose instance ended
 * by itself, or whose row may have been pruned. Any other machine without a row gets it again without being asked for.
 *
 * @throws {ActionRefused}
 */
export async function requestAdoption(
  deps: Deps,
  actor: Actor,
  { ref, isDone }: { ref: string; isDone: boolean },
): Promise<Adoption> {
  const plan = async (read: Pick<Reader, 'alarms' | 'instances'>): Promise<Adoption> => {
    const orphan = (await read.alarms.list()).find(
      ({ kind, subject }) => ADOPTABLE.has(kind) && subject === ref,
    );
    if (orphan === undefined)
      throw new ActionRefused(`No machine ${ref} stands as an orphan: see \`berth alarms ls\`.`, 'not_found');
    const row = await read.instances.byOwnerRef(ref);
    if (row !== null && row.destroyOrder !== null)
      throw new ActionRefused(`The end of ${row.id} was asked for: its machine is being removed.`);
    if (row !== null && row.status !== 'ERROR' && row.status !== 'OFFLINE')
      throw new ActionRefused(`${row.id} is ${row.status}, and has the machine: there is nothing to adopt.`);
    return { ref, platform: orphan.platform, problem: orphan.text, effect: EFFECT, isDone };
  };
  if (!isDone) return plan(deps.store.read);
  return audited(deps, actor, { action: 'machine.adopt', subject: ref }, (inside) =>
    inside.transact(async (tx) => {
      const planned = await plan(tx);
      await tx.marks.put(markOf(ref), deps.clock.now());
      return planned;
    }),
  );
}

/** What became of the machine; `unknown`: the platform does not tell now. */
export type AdoptionOutcome = Adopted | 'gone' | 'unknown';

interface AdoptionsDeps extends Deps {
  log: Pick<Log, 'warn'>;
  alarms: Pick<Alarms, 'standing' | 'server'>;
  /** By the names of the platforms that this server serves. */
  adopt: ReadonlyMap<string, (ref: string) => Promise<AdoptionOutcome>>;
}

/** Adopts the machines of this server's platforms for which that was asked. */
export class Adoptions {
  readonly #deps: AdoptionsDeps;

  constructor(deps: AdoptionsDeps) {
    this.#deps = deps;
  }

  /** What the platform does not tell now is asked again in the next round. */
  async poll(): Promise<void> {
    const { store, alarms, adopt } = this.#deps;
    for (const { kind, subject: ref, platform } of alarms.standing()) {
      const adoptRef = adopt.get(platform ?? '');
      if (!ADOPTABLE.has(kind) || adoptRef === undefined) continue;
      if ((await store.read.marks.get(markOf(ref))) === null) continue;
      const outcome = await adoptRef(ref);
      if (outcome !== 'unknown') await this.#settle(ref, outcome);
    }
  }

  async #settle(ref: string, outcome: Exclude<AdoptionOutcome, 'unknown'>): Promise<void> {
    const { store, clock, log, alarms } = this.#deps;
    const problem = problemOf(outcome);
    if (problem !== undefined) log.warn({ ref, problem }, 'a machine was not adopted');
    const server: Actor = { name: alarms.server, source: 'server', address: null };
    await store.transact(async (tx) => {
      if ((await tx.marks.remove(markOf(ref))) === null) return;
      await audit(tx, clock, server, {
        action: 'machine.adopt',
        subject: ref,
        detail: problem === undefined ? { adopted: true } : { reason: problem },
        outcome: problem === undefined ? 'done' : 'failed',
      });
    });
  }
}

function problemOf(outcome: Exclude<AdoptionOutcome, 'unknown'>): string | undefined {
  if (outcome === 'adopted') return undefined;
  if (outcome === 'gone') return 'the platform no longer has it';
  return outcome === 'foreign' ? 'another installation made it' : outcome.problem;
}
