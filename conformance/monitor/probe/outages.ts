import type { Exchange, TranscriptRecord } from '../../transcript/records.ts';

/** No connection, so no request arrived. */
const NOT_CONNECTED = ['dns', 'connect', 'tls'];

/**
 * Marks what an outage leaves as superseded, so that no check judges it: answers of 503 with `Retry-After`, connections that
 * were not accepted, and reads without an answer. They count as unanswered reads instead: over weeks it is their share that
 * matters.
 */
export function withoutOutages(records: readonly TranscriptRecord[]): TranscriptRecord[] {
  return records.map((record) =>
    record.kind === 'exchange' && isOutage(record) ? { ...record, superseded: true } : record,
  );
}

function isOutage({ request, answer, failure }: Exchange): boolean {
  if (answer !== undefined) return answer.status === 503 && answer.headers['retry-after'] !== undefined;
  if (failure === undefined || failure.kind === 'too_large' || failure.kind === 'not_http') return false;
  return request.method === 'GET' || NOT_CONNECTED.includes(failure.kind);
}
