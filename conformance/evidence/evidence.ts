import { stringField } from '../text/json.ts';
import { successOf } from '../transcript/exchange.ts';
import type {
  EndRecord,
  Exchange,
  ResourceRecord,
  RunRecord,
  Skipped,
  SshRecord,
  TranscriptRecord,
} from '../transcript/records.ts';
import { type Finding, MissingEvidence, notApplicable, notTested } from './finding.ts';
import { type InstanceTimeline, instanceTimelines, untilBack } from './instances.ts';
import { type SeenObjects, seenObjects } from './objects.ts';
import { type VolumeTimeline, volumeTimelines } from './volumes.ts';

/** The transcript of a run, indexed for the checks. */
export class Evidence {
  readonly run: RunRecord;
  readonly end: EndRecord | undefined;
  /** Every request that was sent, in the order of sending. */
  readonly sent: readonly Exchange[];
  /** The requests that were not superseded by a retry. */
  readonly exchanges: readonly Exchange[];
  readonly logins: readonly SshRecord[];
  /** The latest record of each ledger entry. */
  readonly resources: readonly ResourceRecord[];
  /** Where the last race begins: one that fell short beside other instances is repeated alone, and not judged. */
  readonly #lastRaceFrom: number;
  readonly #skipped: readonly Skipped[];
  #instances: readonly InstanceTimeline[] | undefined;
  #instancesAtEnd: readonly InstanceTimeline[] | undefined;
  #volumes: readonly VolumeTimeline[] | undefined;
  #objects: SeenObjects | undefined;

  constructor(records: readonly TranscriptRecord[]) {
    const [run] = records;
    if (run?.kind !== 'run') throw new Error('a transcript begins with its run');
    this.run = run;
    this.end = records.find((record) => record.kind === 'end');
    this.sent = records.filter((record) => record.kind === 'exchange').toSorted((a, b) => a.n - b.n);
    // What a target answers while its operator restarts it is not judged.
    this.exchanges = this.sent.filter(
      ({ superseded, step }) => superseded !== true && step !== 'restart/wait',
    );
    this.#lastRaceFrom = this.sent.findLast(({ step }) => step === 'race/list')?.n ?? 0;
    this.logins = records.filter((record) => record.kind === 'ssh');
    this.#skipped = records.filter((record) => record.kind === 'skipped');
    const last = new Map(
      records.filter((record) => record.kind === 'resource').map((record) => [record.entry, record]),
    );
    this.resources = [...last.values()];
  }

  /** The instances that the run created, each with every observation of it; of one that came back at the end, up to then. */
  get instances(): readonly InstanceTimeline[] {
    this.#instances ??= this.instancesAtEnd.map(untilBack);
    return this.#instances;
  }

  /** The same, with what was seen of those that came back. */
  get instancesAtEnd(): readonly InstanceTimeline[] {
    this.#instancesAtEnd ??= instanceTimelines(this.exchanges, this.#idsOf('instance'), this.#spotOffers);
    return this.#instancesAtEnd;
  }

  get volumes(): readonly VolumeTimeline[] {
    this.#volumes ??= volumeTimelines(this.exchanges, this.#idsOf('volume'));
    return this.#volumes;
  }

  /** Every configuration, instance, volume and location in an answer. */
  get objects(): SeenObjects {
    this.#objects ??= seenObjects(this.exchanges);
    return this.#objects;
  }

  /**
   * The exchanges of a step (`<scenario>/<what>`) or of every step with that prefix. Throws `MissingEvidence` if there
   * are none.
   */
  steps(...beginnings: readonly string[]): Exchange[] {
    const found = this.anySteps(...beginnings);
    if (found.length === 0) throw new MissingEvidence(this.#whyNone(beginnings));
    return found;
  }

  /** The first exchange of a step. Throws `MissingEvidence` if there is none. */
  step(name: string): Exchange {
    const [first] = this.steps(name);
    if (first === undefined) throw new Error('`steps` throws where there are none');
    return first;
  }

  anySteps(...beginnings: readonly string[]): Exchange[] {
    return this.exchanges.filter(
      ({ step, n }) =>
        beginnings.some((beginning) => isStep(step, beginning)) &&
        (n >= this.#lastRaceFrom || !isStep(step, 'race')),
    );
  }

  /** The logins of a step. Throws `MissingEvidence` if there are none. */
  loginsAt(...beginnings: readonly string[]): SshRecord[] {
    const found = this.logins.filter(({ step }) => beginnings.some((beginning) => isStep(step, beginning)));
    if (found.length === 0) throw new MissingEvidence(this.#whyNone(beginnings));
    return found;
  }

  #whyNone(beginnings: readonly string[]): Finding {
    const why = this.#skipped.find(({ steps }) =>
      steps.some((step) =>
        beginnings.some((beginning) => isStep(beginning, step) || isStep(step, beginning)),
      ),
    );
    if (why?.capability !== undefined) return notApplicable(why.capability, why.reason);
    if (why !== undefined) return notTested(why.reason);
    const ended = this.end?.reason ?? 'interrupted';
    if (ended !== 'completed') return notTested(`the run ended before it: ${this.end?.detail ?? ended}`);
    return notTested(`the run did not come to it (${beginnings.join(', ')})`);
  }

  get #spotOffers(): Set<string | undefined> {
    const spot = this.objects.configurations.filter(
      ({ value }) => stringField(value, 'instance_type') === 'SPOT',
    );
    return new Set(spot.map(({ value }) => stringField(value, 'id')));
  }

  #idsOf(type: ResourceRecord['type']): Map<string, ResourceRecord> {
    const own = this.resources.filter((resource) => resource.type === type);
    return new Map(own.flatMap((resource) => (resource.id === undefined ? [] : [[resource.id, resource]])));
  }
}

/** `stop/read` matches `stop/read`, `stop` and `stop/`, but not `sto`. */
function isStep(step: string, beginning: string): boolean {
  return step === beginning || step.startsWith(beginning.endsWith('/') ? beginning : `${beginning}/`);
}

/** A request, with a read of its target before and after it. */
export interface RequestBetweenReads {
  before: Exchange;
  asked: Exchange;
  after: Exchange;
}

/**
 * The steps `<scenario>/<action>`, `before-<action>` and `after-<action>`. Undefined if one of them is missing, or if a
 * read shows no status, so that the effect of the request is unknown.
 */
export function requestBetweenReads(
  evidence: Evidence,
  scenario: string,
  action: string,
): RequestBetweenReads | undefined {
  const [before] = evidence.anySteps(`${scenario}/before-${action}`);
  const [asked] = evidence.anySteps(`${scenario}/${action}`);
  const [after] = evidence.anySteps(`${scenario}/after-${action}`);
  if (before === undefined || asked === undefined || after === undefined) return undefined;
  return statusShown(before) === undefined || statusShown(after) === undefined
    ? undefined
    : { before, asked, after };
}

export function statusShown(exchange: Exchange): string | undefined {
  return stringField(successOf(exchange), 'status');
}
