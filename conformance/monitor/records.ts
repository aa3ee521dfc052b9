import type { EndRecord } from '../transcript/records.ts';

/** `read` creates nothing; `machine` rents one. */
export type ProbeKind = 'read' | 'machine';

/** A probe and what it saw. */
export interface StoredProbe {
  runId: string;
  provider: string;
  kind: ProbeKind;
  /** Milliseconds since the epoch. */
  startedAt: number;
  summary: ProbeSummary;
}

/** A share, as its two numbers. */
export interface Tally {
  good: number;
  of: number;
}

/** What one probe saw. Ids, names and addresses of its machines are taken out: a provider would recognise the account. */
export interface ProbeSummary {
  end: EndRecord['reason'];
  detail?: string;
  /** Ids of checks. Those that the probe did not make are in none of the lists. */
  passed: string[];
  failed: Fault[];
  warned: Fault[];
  notTested: NotTested[];
  /** Milliseconds of the reads that were answered. */
  latenciesMs: number[];
  /** Reads that were answered, without those of 5xx. */
  answered: Tally;
  /** Logins to an ONLINE machine, at drawn moments. */
  reached: Tally;
  /** Creates of an offer that was listed as available right before and after; good: not refused for capacity. */
  stocked: Tally;
  /** Instances that show a price; good: not above that of their offer. */
  priced: Tally;
  /** Machines whose raw blocks were read; good: without a marker of an earlier machine. */
  clean: Tally;
  /** USD, by the price of the offer or of the instance, whichever is higher. */
  costUsd: number;
  /** Resources that may still exist. */
  left: number;
  /** What could be rented, cheapest first. */
  offers?: Priced[];
  /** Digest of the transcript, which the state keeps if a check failed or warned. */
  transcriptSha256?: string;
}

/** An offer in a region. */
export interface Priced {
  offer: string;
  region: string;
  /** USD. */
  pricePerHour: number;
}

export interface Fault {
  check: string;
  expected: string;
  actual: string;
  /** The request and its answer, in a few words. */
  request?: string;
}

export interface NotTested {
  check: string;
  reason: string;
}

/** A message for an operator. */
export interface Alert {
  id: string;
  /** RFC 3339. */
  at: string;
  provider: string;
  kind: 'status' | 'may be running' | 'cannot buy';
  text: string;
}
