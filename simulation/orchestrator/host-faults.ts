import type { PlatformHost } from '../../src/platform-model/platform.ts';
import type { World } from './world.ts';

/** By then every server has listed what a host that answers again has. No driver could see a move before that. */
const LISTED_WITHIN_MS = 600_000;

const RATES = { silence: 0.04, renameInSilence: 0.3, unconfigure: 0.015, move: 0.05 };

/**
 * Draws what befalls the hosts of the platform before the next command. Machines run on, and their SSH answers. An operator who
 * accepts losses has looked at the hosts before: none is touched meanwhile.
 */
export function injectHostFaults(world: World): void {
  const { hostChance: chance, isLossAccepted, isCalm } = world;
  const { hosts } = world.troubled;
  if (hosts === undefined || isLossAccepted || isCalm) return;
  const answering = hosts.all.filter(({ state }) => state === 'answers');
  if (answering.length === 0) return;
  if (chance.happens(RATES.move)) move(world, answering);
  if (chance.happens(RATES.silence)) silence(world, chance.pick(answering));
  if (answering.length > 1 && chance.happens(RATES.unconfigure)) unconfigure(world, chance.pick(answering));
}

/** It is silent, to the servers alone or dead, and may come back under another name. */
function silence(world: World, host: PlatformHost): void {
  const { hostChance: chance, journal } = world;
  host.state = 'silent';
  journal.note('platform', `${host.name} falls silent`);
  const isRenamed = chance.happens(RATES.renameInSilence);
  const ms = chance.between(15_000, chance.happens(0.3) ? 1_800_000 : 180_000);
  if (isRenamed) world.scheduler.after(ms / 2, () => !world.isCalm && rename(world, host));
  world.scheduler.after(ms, () => !world.isCalm && answer(world, host));
}

function rename(world: World, host: PlatformHost): void {
  const name = `${host.name}x`;
  world.journal.note('platform', `${host.name} is ${name} now`);
  host.name = name;
}

/** Only where every machine on it was seen there: else the operator would have made the second machine of a row. */
function unconfigure(world: World, host: PlatformHost): void {
  const { hostChance: chance, journal, troubled, inspector } = world;
  const own = troubled.machines.all().filter((machine) => troubled.hosts?.of(machine) === host);
  if (!own.every(({ spec }) => inspector.history.byRef(spec.ref)?.host === host.name)) return;
  host.state = 'unconfigured';
  journal.note('platform', `${host.name} is not configured any more`);
  world.scheduler.after(chance.between(30_000, 900_000), () => !world.isCalm && answer(world, host));
}

/** The operator moves a machine by hand; now and then its new host dies right after. */
function move(world: World, answering: readonly PlatformHost[]): void {
  const { hostChance: chance, journal, troubled } = world;
  const { hosts } = troubled;
  const fitting = troubled.machines
    .all()
    .filter((machine) => machine.power === 'running' && hosts?.isReached(machine) === true);
  if (fitting.length === 0) return;
  const machine = chance.pick(fitting);
  const isGoal = (host: PlatformHost): boolean =>
    host !== hosts?.of(machine) && world.scheduler.now >= host.answersSince + LISTED_WITHIN_MS;
  const goals = answering.filter(isGoal);
  if (goals.length === 0) return;
  const goal = chance.pick(goals);
  hosts?.move(machine, goal);
  journal.note('platform', `${machine.spec.ref} is moved to ${goal.name}`);
  if (chance.happens(0.4)) silence(world, goal);
}

function answer(world: World, host: PlatformHost): void {
  host.state = 'answers';
  host.answersSince = world.scheduler.now;
  world.journal.note('platform', `${host.name} answers again`);
}

/** At rest each host answers. */
export function endHostFaults({ troubled }: World): void {
  for (const host of troubled.hosts?.all ?? []) host.state = 'answers';
}
