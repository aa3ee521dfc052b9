import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notApplicable, notTested, type Problem } from '../../evidence/finding.ts';
import { type InstanceTimeline, isWhileAlive } from '../../evidence/instances.ts';
import { offerTypes } from '../../evidence/offers.ts';
import { stringField } from '../../text/json.ts';
import { printable } from '../../text/printable.ts';
import { duration } from '../../text/wording.ts';

interface Boot {
  timeline: InstanceTimeline;
  /** Milliseconds from the 201 to the last read that showed PROVISIONING. */
  provisioningMs: number;
  end: 'ONLINE' | 'other' | 'still booting';
  status: string;
  /** The instance's own text about its end. */
  error?: string;
}

/**
 * Whether the run's virtual machines came ONLINE within a limit. The delay of one poll does not count against the
 * target.
 */
export function judgeReady(evidence: Evidence, limitMs: number): Finding {
  const boots = evidence.instances.flatMap((timeline) => bootOf(timeline) ?? []);
  if (boots.length === 0) return notTested('no instance of the run was left to boot');
  const typeOf = offerTypes(evidence);
  const isVm = ({ timeline }: Boot): boolean => !['BARE_METAL', 'CLUSTER'].includes(typeOf(timeline) ?? '');
  const ofVms = withoutFailures(boots.filter(isVm));
  if (ofVms.length === 0)
    return notApplicable(
      'virtual machines',
      'what the run bought is BARE_METAL or CLUSTER, whose limit is agreed',
    );
  const waiting = ofVms.find(
    ({ end, provisioningMs }) => end === 'still booting' && provisioningMs < limitMs,
  );
  if (waiting !== undefined)
    return notTested(
      `after ${duration(waiting.provisioningMs)} it was still PROVISIONING, and the run's patience was over before the limit of ${duration(limitMs)}: wait longer with --ready-timeout-s`,
    );
  const broken = ofVms.find(({ status, error }) => status === 'ERROR' && error !== undefined);
  if (broken !== undefined)
    return notTested(
      `the machine failed, which the contract allows: ERROR, ${printable(broken.error ?? '', 300)}`,
    );
  return judgeEach(ofVms, 'boots', (boot) => lookAt(boot, limitMs), lastShown);
}

/** Leaves out machines that failed with ERROR, which is lawful as long as others came ONLINE. */
function withoutFailures(boots: readonly Boot[]): readonly Boot[] {
  const hasOnline = boots.some(({ end }) => end === 'ONLINE');
  return hasOnline ? boots.filter(({ status }) => status !== 'ERROR') : boots;
}

function lookAt({ end, provisioningMs, status }: Boot, limitMs: number): Problem | undefined {
  if (end === 'other') return { expected: 'ONLINE', actual: `it became ${status}` };
  if (provisioningMs < limitMs) return undefined;
  return {
    expected: `ONLINE within ${duration(limitMs)} of the 201`,
    actual: `still PROVISIONING after ${duration(provisioningMs)}`,
  };
}

function lastShown({ timeline }: Boot) {
  return timeline.observations.findLast(({ status }) => status === 'PROVISIONING')?.exchange;
}

/** Undefined for an instance that was destroyed or stopped before it could come ONLINE. */
function bootOf(timeline: InstanceTimeline): Boot | undefined {
  const { created } = timeline;
  if (created === undefined) return undefined;
  const inLife = timeline.observations.filter(
    ({ source, exchange }) => source === 'get' && isWhileAlive(timeline, exchange),
  );
  const settled = inLife.find(({ status }) => status !== 'PROVISIONING' && status !== '404');
  const booting = settled === undefined ? inLife : inLife.slice(0, inLife.indexOf(settled));
  const provisioning = booting.filter(({ status }) => status === 'PROVISIONING');
  const provisioningMs = (provisioning.at(-1)?.exchange.sentAt ?? created.endedAt) - created.endedAt;
  if (settled !== undefined) {
    const isOnline = ['ONLINE', 'STOPPING', 'STOPPED'].includes(settled.status);
    const error = stringField(settled.instance, 'error');
    return {
      timeline,
      provisioningMs,
      end: isOnline ? 'ONLINE' : 'other',
      status: settled.status,
      ...(error !== undefined && { error }),
    };
  }
  const isCutShort = timeline.deletes.length > 0 && provisioning.length < 3;
  return isCutShort ? undefined : { timeline, provisioningMs, end: 'still booting', status: 'PROVISIONING' };
}
