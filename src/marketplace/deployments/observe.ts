import type { ProviderProblem } from '../../client/orchestrator-client.ts';
import type { Instance } from '../../contract/instance.ts';
import { microUsdFromUsd, toOneLine } from '../../contract/values.ts';
import { activeStatuses, type DeploymentStatus, type FailureReason } from '../contract/deployment.ts';
import type { DeploymentIntent, DeploymentRecord, Suspicion } from '../model/deployment-record.ts';
import { isUnsent } from '../model/intent.ts';
import type { MarketplaceOptions } from '../model/options.ts';
import { type Endpoint, endpointOf, isSameEndpoint } from './endpoint.ts';

/**
 * One observation of an instance. `isListed` says whether the provider's list contains it. It is absent if the list was
 * not read. `isVolumeChanging`: a volume of it is being attached or detached, which may restart it.
 */
export type Observation =
  | { instance: Instance; isVolumeChanging?: boolean }
  | { gone: true; isListed?: boolean }
  | { problem: ProviderProblem };

/** The properties besides the status that differ from the record. */
export interface Facts {
  endpoint?: Endpoint;
  /** A changed spot price: the provider's price in micro-USD per hour. */
  providerRateMicroUsd?: number;
}

/** The conclusion from an observation. `why` is for the log. */
export type Judgement =
  /** The observation is unusable. */
  | { kind: 'hold'; why: string }
  /** The record is correct up to now. */
  | { kind: 'confirm'; facts: Facts; why?: string }
  /** The status may have changed, but the change must last or be confirmed first. */
  | { kind: 'suspect'; suspicion: Suspicion; why: string }
  | {
      kind: 'change';
      to: DeploymentStatus;
      /** The time from which the change counts. */
      at: number;
      facts: Facts;
      failure?: { reason: FailureReason; details: string };
      /** The deployment ended because the provider answers 404 for the instance. */
      isLoss?: boolean;
      why: string;
    };

type Change = Extract<Judgement, { kind: 'change' }>;
type Polling = Pick<MarketplaceOptions['polling'], 'blinkMs' | 'goneAfterMs' | 'findCreateMs'>;

/** The times of an observation, and the values it is judged by. */
export interface ObservedUnder {
  /** The start of the observation. The record is confirmed up to this time. */
  now: number;
  /** The end of the observation. An observed change counts from this time at the latest. */
  seenAt: number;
  polling: Polling;
}

interface ObservedInstance extends ObservedUnder {
  record: DeploymentRecord;
  instance: Instance;
  isVolumeChanging?: boolean;
}

/** How long after a stop a provider may still show the earlier state. */
const STOP_SHOWS_MS = 60_000;

/** A price above this multiple of the ordered one is rejected as a mistake. */
const MAX_PRICE_FACTOR = 10;

/**
 * A deployment ends only by a terminal status, a destruction that lasts, or a 404 that a second poll and the list
 * confirm (M: States; design, "Settled").
 */
export function judge(record: DeploymentRecord, observation: Observation, under: ObservedUnder): Judgement {
  if (!activeStatuses.includes(record.status)) return hold(`it is ${record.status}`);
  if (record.launch.state !== 'made') return hold('its instance id is not known yet');
  if ('problem' in observation) return hold(`the provider's answer cannot be used: ${observation.problem}`);
  if ('gone' in observation) return judgeGone(record, observation.isListed, under);
  const { instance } = observation;
  if (instance.id !== record.providerInstanceId) return hold('the provider answered with another instance');
  return byStatus[instance.status]({ ...under, ...observation, record });
}

/** Whether a 404 now would be final if the provider's list confirmed it. Only then is the list read. */
export function needsList(
  { suspicion, ...record }: DeploymentRecord,
  now: number,
  polling: Polling,
): boolean {
  if (suspicion?.status !== 'GONE' || now - suspicion.since < polling.goneAfterMs) return false;
  // The list may lag behind a create.
  const isYoung = record.status === 'deploying' && now - (record.launch.sentAt ?? 0) < polling.findCreateMs;
  return !isYoung;
}

const byStatus: Readonly<Record<Instance['status'], (observed: ObservedInstance) => Judgement>> = {
  PROVISIONING: ({ record }) =>
    record.status === 'deploying' ? { kind: 'confirm', facts: {} } : hold('it is being provisioned again'),
  ONLINE: judgeOnline,
  STOPPING: judgeStopping,
  STOPPED: judgeStopped,
  OFFLINE: (observed) => (isSpot(observed) ? end(observed) : endIfItLasts(observed)),
  DESTROYING: (observed) => (isSpot(observed) ? end(observed) : endIfItLasts(observed)),
  DESTROYED: end,
  ERROR: fail,
};

function judgeOnline(observed: ObservedInstance): Judgement {
  const { record, instance, seenAt } = observed;
  const endpoint = endpointOf(instance, record);
  if (endpoint === null) return hold('it is ONLINE without an address');
  const { why, ...price } = priceFact(observed);
  const facts: Facts = { ...(!isSameEndpoint(record, endpoint) && { endpoint }), ...price };
  if (record.status === 'running') return { kind: 'confirm', facts, why };
  if (isBeforeStop(observed)) return hold('it is ONLINE, but it was stopped just now');
  // Billing starts at the observation. After a stop, it resumes at the time that the provider reports.
  const at = record.status === 'deploying' ? seenAt : changedAt(observed);
  return { kind: 'change', to: 'running', at, facts, why: why ?? 'it is ONLINE' };
}

/** Whether the answer may still show the state before the stop. Once a start was sent, this no longer holds. */
function isBeforeStop(observed: ObservedInstance): boolean {
  const { record, now } = observed;
  if (record.status !== 'stopped' || isSpot(observed) || isExplainedBy(record, 'resume')) return false;
  return now - (record.pausedAt ?? 0) < STOP_SHOWS_MS;
}

function judgeStopping(observed: ObservedInstance): Judgement {
  const { record } = observed;
  if (record.status === 'deploying') return hold('it stops before it was ONLINE');
  // The requested stop is in progress. The running rate applies until it is done.
  if (record.status === 'running' && isExplainedBy(record, 'pause')) return { kind: 'confirm', facts: {} };
  if (record.status === 'stopped' || isSpot(observed) || isRestarting(observed))
    return hold('it is STOPPING');
  return suspect(observed);
}

function judgeStopped(observed: ObservedInstance): Judgement {
  const { record } = observed;
  if (record.status === 'deploying') return hold('it is STOPPED before it was ONLINE');
  if (record.status === 'stopped') return { kind: 'confirm', facts: {} };
  const isAsked = isExplainedBy(record, 'pause');
  if (!isAsked && isRestarting(observed)) return hold('it is STOPPED by a change in progress');
  if (isAsked || isSpot(observed))
    return { kind: 'change', to: 'stopped', at: changedAt(observed), facts: {}, why: 'it is STOPPED' };
  const since = lastingSince(observed);
  if (since === null) return suspect(observed);
  return { kind: 'change', to: 'stopped', at: since, facts: {}, why: 'it stays STOPPED' };
}

function judgeGone(
  record: DeploymentRecord,
  isListed: boolean | undefined,
  { now, polling }: ObservedUnder,
): Judgement {
  const { suspicion } = record;
  const isAgain = suspicion?.status === 'GONE' && isListed !== true;
  if (isAgain && isListed === false && needsList(record, now, polling)) {
    // The time of the loss is unknown, so billing ends at the last confirmation.
    const at = record.observedAt ?? record.createdAt;
    return {
      ...over(record, at, 'the provider no longer has it: 404 twice, and missing in its list'),
      isLoss: true,
    };
  }
  return {
    kind: 'suspect',
    suspicion: {
      status: 'GONE',
      since: isAgain ? suspicion.since : now,
      polls: isAgain ? suspicion.polls + 1 : 1,
    },
    why: isListed === true ? '404, but its list shows it' : '404',
  };
}

/** M: rule 4: "spot instances follow provider-reported state". */
function isSpot({ record }: ObservedInstance): boolean {
  return record.instanceType === 'SPOT';
}

/** Whether a sent call explains the observed status. */
function isExplainedBy({ action }: DeploymentRecord, kind: DeploymentIntent['kind']): boolean {
  return action !== null && !isUnsent(action) && action.kind === kind;
}

function isRestarting({ record, isVolumeChanging }: ObservedInstance): boolean {
  return isVolumeChanging === true || isExplainedBy(record, 'restart');
}

function end(observed: ObservedInstance): Judgement {
  return over(observed.record, changedAt(observed), `it is ${observed.instance.status}`);
}

function endIfItLasts(observed: ObservedInstance): Judgement {
  const since = lastingSince(observed);
  return since === null
    ? suspect(observed)
    : over(observed.record, since, `it stays ${observed.instance.status}`);
}

function over(record: DeploymentRecord, at: number, why: string): Change {
  if (record.status !== 'deploying') return { kind: 'change', to: 'terminated-provider', at, facts: {}, why };
  const failure = {
    reason: 'provider_lost',
    details: `The machine disappeared at the provider: ${why}.`,
  } as const;
  return { kind: 'change', to: 'failed', at, facts: {}, failure, why };
}

function fail(observed: ObservedInstance): Judgement {
  const { record, instance } = observed;
  const reason = record.status === 'deploying' ? 'provisioning_failed' : 'runtime_failure';
  const details = toFailureDetails(instance.error ?? '') || 'The provider gave no reason.';
  const failure = { reason, details } as const;
  return { kind: 'change', to: 'failed', at: changedAt(observed), facts: {}, failure, why: 'ERROR' };
}

function suspect({ record, instance: { status }, now }: ObservedInstance): Judgement {
  const before = sameSuspicion(record, status);
  return {
    kind: 'suspect',
    suspicion: { status, since: before?.since ?? now, polls: (before?.polls ?? 0) + 1 },
    why: `it is ${status} without a request`,
  };
}

/** When the status began, or null if it has not lasted long enough to be applied. */
function lastingSince(observed: ObservedInstance): number | null {
  const { record, instance, now, polling } = observed;
  const before = sameSuspicion(record, instance.status);
  if (before === undefined || now - before.since < polling.blinkMs) return null;
  return changedAt({ ...observed, seenAt: before.since });
}

/** STOPPING and STOPPED count as one suspicion; so do OFFLINE and DESTROYING. */
function sameSuspicion({ suspicion }: DeploymentRecord, status: Instance['status']): Suspicion | undefined {
  const isStop = (it: string) => it === 'STOPPING' || it === 'STOPPED';
  if (suspicion === null || suspicion.status === 'GONE') return undefined;
  return isStop(suspicion.status) === isStop(status) ? suspicion : undefined;
}

/** The provider's `updated_at`, but not before the last confirmation and not after the observation. */
function changedAt({ record, instance, seenAt }: ObservedInstance): number {
  const reported = Date.parse(instance.updated_at);
  const earliest = record.observedAt ?? record.startedAt ?? record.createdAt;
  return Math.max(earliest, Number.isNaN(reported) ? seenAt : Math.min(reported, seenAt));
}

/** Only spot prices change. All others stay as they were at the create. */
function priceFact({ record, instance }: ObservedInstance): {
  providerRateMicroUsd?: number;
  why?: string;
} {
  const reported = instance.price_per_hour;
  if (record.instanceType !== 'SPOT' || reported === undefined) return {};
  if (!Number.isFinite(reported) || reported < 0) return { why: 'its price is invalid' };
  const providerRateMicroUsd = microUsdFromUsd(reported);
  if (providerRateMicroUsd === record.providerRateMicroUsd) return {};
  if (providerRateMicroUsd > record.orderedProviderRateMicroUsd * MAX_PRICE_FACTOR)
    return {
      why: `its price of ${reported} is more than ${MAX_PRICE_FACTOR} times the price at order: it is ignored`,
    };
  return { providerRateMicroUsd };
}

function hold(why: string): Judgement {
  return { kind: 'hold', why };
}

/** Shortens a provider's text to one line (M: "One readable line on failed deployments"). */
export function toFailureDetails(text: string): string {
  return toOneLine(text, 300);
}
