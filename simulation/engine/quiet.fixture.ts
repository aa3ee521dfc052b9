import type { EngineScenario } from './scenario.ts';

const none = <Name extends string>(...names: Name[]): Record<Name, number> =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;

/** One server and one host, where nothing goes wrong. */
export const quiet: Partial<EngineScenario> = {
  hosts: 1,
  replicas: 1,
  paceMs: 9_000,
  lostReplies: 0,
  failOver: 0,
  restore: 0,
  newCatalog: 0,
  upgrade: 0,
  trouble: none('unavailable', 'unknownOutcome', 'death'),
  commandFaults: none('before', 'after', 'late', 'mute', 'slow', 'still'),
  serverFaults: none('crash', 'powerCut', 'pause', 'partition', 'clockJump'),
  people: none('move', 'evacuate', 'rename', 'undefine', 'clone', 'remove', 'powerOff', 'silence', 'meddle'),
};
