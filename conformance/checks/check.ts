import type { Evidence } from '../evidence/evidence.ts';
import type { Level } from '../transcript/records.ts';
import type { Finding } from '../verdict/finding.ts';

/** What proves a requirement: a function of what a run saw. It asks nothing of the network. */
export interface Check {
  /** The id of the requirement in requirements.yaml that it is named after. */
  id: string;
  /** The lowest level at which a run sees enough. */
  level: Level;
  /** The scenarios in which it is seen: what a run of this check alone has to do. */
  scenarios: readonly string[];
  /** May throw `Unproved`, which the evidence does where a step is missing. */
  judge(evidence: Evidence): Finding;
}
