import { z } from 'zod';
import { audit } from '../../../operator-kit/audit.ts';
import type { Actor } from '../../../operator-kit/model.ts';
import { type CommandSpec, defineAction } from '../../../operator-kit/operation.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Log } from '../../../ports/log.ts';
import type { Alarms } from '../../alarms/alarms.ts';
import { idOf } from '../../model/attempt.ts';
import type { MarkName } from '../../model/marks.ts';
import type { Reader, Store } from '../../model/store.ts';
import { supersede } from '../../platform/superseded-attempts.ts';
import type { OrphanOutcome } from '../../reconciliation/without-row.ts';
import { ActionRefused } from './refused.ts';

/**
 * An operator's decision about a machine with Berth's mark and no live instance. `adopt` makes it a new instance of its
 * account, `release` removes the mark, `destroy` removes it with its disks. A volume without a row can only be
 * destroyed.
 */
const orphanActions = ['adopt', 'release', 'destroy'] as const;
export type OrphanAction = (typeof orphanActions)[number];

const orphanPlanSchema = z
  .object({
    ref: z.string(),
    platform: z.string().nullable(),
    problem: z.string(),
    effect: z.string(),
    done: z.boolean().meta({ description: 'False: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'OrphanPlan' });
type OrphanPlan = z.output<typeof orphanPlanSchema>;

interface Deps {
  store: Store;
  clock: Pick<Clock, 'now'>;
}

const EFFECTS: Readonly<Record<OrphanAction, string>> = {
  adopt:
    'within 10 seconds a server reads its note; if the note is complete and ours, the machine becomes a new instance of its account, ' +
    'under a new id: the old id was answered ERROR, OFFLINE or 404, which is final for its client',
  release:
    'within 10 seconds a server removes our tag from it, if it is shut off: from then on it is yours, with its disks, and Berth neither ' +
    'shows, counts nor removes it',
  destroy: 'it is removed, and all data on it is lost',
};

const UNOWNED: ReadonlySet<string> = new Set(['orphan_machine', 'orphan_volume', 'row_lost', 'leftover']);
const isVolume = (ref: string): boolean => ref.startsWith('berth-vol-');
/** The actions that a server carries out, since they need a driver. */
const byServer = ['adopt', 'release'] as const;

const markOf = (action: (typeof byServer)[number], ref: string): MarkName => `${action}_requested:${ref}`;

type Read = Pick<Reader, 'alarms' | 'instances' | 'volumes' | 'attempts' | 'marks'>;

/** The unfinished order for a machine or a volume. A second, different order would undo it. */
async function orderedBefore({ attempts, marks }: Read, ref: string): Promise<OrphanAction | null> {
  for (const action of byServer) if ((await marks.get(markOf(action, ref))) !== null) return action;
  const attempt = await attempts.byRef(ref);
  return attempt !== null && attempt.closedAt === null ? 'destroy' : null;
}

/** @throws {ActionRefused} if an instance has the machine, or `berth instances rm` has to remove both */
async function refuseOwnedMachine({ instances }: Read, ref: string, action: OrphanAction): Promise<void> {
  const row = await instances.byOwnerRef(ref);
  if (row === null) return;
  if (row.destroyOrder !== null)
    throw new ActionRefused(`The deletion of ${row.id} was requested: its machine is being removed.`);
  if (row.status !== 'ERROR' && row.status !== 'OFFLINE')
    throw new ActionRefused(
      `${row.id} is ${row.status} and owns the machine: there is nothing to ${action}.`,
    );
  if (action === 'destroy')
    throw new ActionRefused(
      `${row.id} had the machine before it was ${row.status}: \`berth instances rm ${row.id} --yes\` removes both.`,
    );
}

/**
 * @throws {ActionRefused} if the volume has a row with another name on the platform: either of the two may have its
 *   data
 */
async function refuseKnownVolume({ volumes }: Read, ref: string): Promise<void> {
  const row = await volumes.byId(idOf(ref));
  if (row === null || row.deletedAt !== null) return;
  throw new ActionRefused(
    `${row.id} owns the volume ${row.ownerRef} on the platform, and ${ref} may be an older or a newer copy of it: ` +
      'compare their data, and remove the other one on the platform.',
  );
}

/** @throws {ActionRefused} */
async function plan(read: Read, ref: string, action: OrphanAction, done: boolean): Promise<OrphanPlan> {
  const orphan = (await read.alarms.list()).find(({ kind, subject }) => UNOWNED.has(kind) && subject === ref);
  if (orphan === undefined)
    throw new ActionRefused(`There is no orphan ${ref}: \`berth orphans ls\` lists them.`, 'not_found');
  if (isVolume(ref) && action !== 'destroy')
    throw new ActionRefused(
      `${ref} is a volume, and only machines can be adopted or released: \`berth orphans rm ${ref}\` shows the options.`,
    );
  if (orphan.kind === 'leftover' && action !== 'destroy')
    throw new ActionRefused(
      `Only parts of ${ref} are left, and only a whole machine can be adopted or released: \`berth orphans rm ${ref}\` shows the options.`,
    );
  // The order is checked before the rows: a server that adopts writes the row first and removes the order later.
  const before = await orderedBefore(read, ref);
  if (before !== null && before !== action)
    throw new ActionRefused(
      `${before === 'destroy' ? 'rm' : before} of ${ref} was already ordered and is not finished: ` +
        `\`berth audit ls --subject ${ref}\` shows its outcome.`,
    );
  if (isVolume(ref)) await refuseKnownVolume(read, ref);
  else await refuseOwnedMachine(read, ref, action);
  return { ref, platform: orphan.platform, problem: orphan.text, effect: EFFECTS[action], done };
}

function command(
  verb: string,
  action: OrphanAction,
  description: string,
): CommandSpec<{ ref: string }, OrphanPlan> {
  return {
    name: `orphans ${verb}`,
    description,
    args: { ref: ['<ref>', 'its name on the platform, from `berth orphans ls`'] },
    fixed: { action },
    toText: ({ problem, effect, done }, { ref }) => {
      if (!done) return [problem, `Plan: ${effect}.`];
      const where = action === 'destroy' ? 'berth work ls' : `berth audit ls --subject ${ref}`;
      return [problem, `Ordered: ${effect}.`, `To see its outcome: ${where}`];
    },
  };
}

/**
 * Records an order to adopt, release or destroy a machine whose instance ended by itself or whose row may have been
 * pruned. The sweep itself restores the row of any other machine.
 */
export const decideOrphan = defineAction({
  name: 'decideOrphan',
  tag: 'Actions',
  path: '/orphans/{ref}/{action}',
  summary: 'Resolve an orphan: a machine without a live instance, or a volume without a row',
  description:
    '`adopt`: a server makes it a new instance of its account, from the note on the machine. `release`: a server removes our tag from it, and it is yours. `destroy`: it is removed with its disks; a volume or a leftover can only be destroyed. A second, different decision is refused until the first has ended. The audit log has how it ended.',
  input: { ref: z.string(), action: z.enum(orphanActions) },
  reply: ['The effect.', orphanPlanSchema],
  commands: [
    command(
      'adopt',
      'adopt',
      'create a new instance, with a new id, for a machine that no live instance owns',
    ),
    command(
      'release',
      'release',
      'remove the mark of Berth from such a machine, if it is shut off: Berth then leaves it and its disks to you',
    ),
    command('rm', 'destroy', 'remove such a machine, such a volume or leftover parts, with their data'),
  ],
  audit: ({ ref, action }) => ({ action: `${isVolume(ref) ? 'volume' : 'machine'}.${action}`, subject: ref }),
  dryRun: ({ store }: Deps, { ref, action }) => plan(store.read, ref, action, false),
  run: ({ store, clock }: Deps, { ref, action }, actor) =>
    store.transact(async (tx) => {
      const planned = await plan(tx, ref, action, true);
      const now = clock.now();
      if (action !== 'destroy') await tx.marks.put(markOf(action, ref), now);
      else if (planned.platform !== null)
        await supersede(
          tx,
          {
            ...{ id: idOf(ref), ownerRef: ref, platform: planned.platform, host: null },
            ...{ resourceKind: isVolume(ref) ? 'volume' : 'instance', createdAt: now },
          },
          actor.name,
          now,
          'operator',
        );
      return planned;
    }),
});

/**
 * How long an order waits until its machine is listed, in milliseconds. Later, the machine may have changed since the
 * operator saw it.
 */
const VALID_MS = 10 * 60_000;
const EXPIRED =
  'the platform did not show the machine, or did not answer, within 10 minutes of the order: check the platform, then order it again';

interface RequestsDeps extends Deps {
  log: Pick<Log, 'warn'>;
  alarms: Pick<Alarms, 'listOpen' | 'server'>;
  /** Carries out an action, by the name of the platform. The map has only the platforms of this server. */
  act: ReadonlyMap<string, (action: (typeof byServer)[number], ref: string) => Promise<OrphanOutcome>>;
}

/** Adopts and releases machines of this server's platforms as operators ordered. */
export class OrphanRequests {
  readonly #deps: RequestsDeps;

  constructor(deps: RequestsDeps) {
    this.#deps = deps;
  }

  /** Runs one round. An `unknown` outcome is retried in the next round, until the order expires. */
  async poll(): Promise<void> {
    const { store, clock, alarms, act } = this.#deps;
    for (const { kind, subject: ref, platform } of alarms.listOpen()) {
      const actOn = act.get(platform ?? '');
      if (!UNOWNED.has(kind) || actOn === undefined) continue;
      for (const action of byServer) {
        const orderedAt = await store.read.marks.get(markOf(action, ref));
        if (orderedAt === null) continue;
        const isLate = clock.now() - orderedAt > VALID_MS;
        const outcome = isLate ? { problem: EXPIRED, isWhole: true } : await actOn(action, ref);
        if (outcome !== 'unknown') await this.#settle(action, ref, outcome);
      }
    }
  }

  async #settle(
    action: (typeof byServer)[number],
    ref: string,
    outcome: Exclude<OrphanOutcome, 'unknown'>,
  ): Promise<void> {
    const { store, clock, log, alarms } = this.#deps;
    const problem = problemOf(outcome);
    if (problem !== undefined)
      log.warn({ ref, action, problem }, 'no action was taken on a machine without an instance');
    const server: Actor = { name: alarms.server, source: 'server', address: null };
    await store.transact(async (tx) => {
      if ((await tx.marks.remove(markOf(action, ref))) === null) return;
      await audit(tx, clock, server, {
        action: `machine.${action}`,
        subject: ref,
        detail: problem === undefined ? { [outcome as string]: true } : { reason: problem },
        outcome: problem === undefined ? 'done' : 'failed',
      });
    });
  }
}

function problemOf(outcome: Exclude<OrphanOutcome, 'unknown'>): string | undefined {
  if (outcome === 'adopted' || outcome === 'released') return undefined;
  if (outcome === 'gone') return 'the platform no longer has it';
  return outcome === 'foreign' ? 'another installation made it' : outcome.problem;
}
