import { lawfulPaths } from '../contract/transitions.ts';
import { isObject, stringField } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { answerOf, isSuccess, jsonOf, statusOf, successOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';

/** The target of a wait. */
export interface Awaited {
  of: 'instance' | 'volume';
  /** The statuses from which the awaited one can still follow; default: any status of the contract. */
  onTheWay?: readonly string[] | undefined;
}

/**
 * Whether the awaited answer may still follow an answer. `never`: the answer breaks the contract. `server-error`: it may
 * be a restart of the server. `destroyed`: lawful, but not for long.
 */
export type Prospect =
  | { mayFollow: 'yes' }
  | { mayFollow: 'server-error' | 'destroyed' | 'never'; why: string };

/** Refusals that ask the client to wait. A 404 has its own meaning. */
const LAWFUL_REFUSALS = [408, 425, 429];

const KNOWN = {
  instance: new Set(lawfulPaths('instance').keys()),
  volume: new Set(lawfulPaths('volume').keys()),
};

/** Classifies an answer to a poll. */
export function prospectOf(exchange: Exchange, { of, onTheWay }: Awaited): Prospect {
  const status = statusOf(exchange);
  if (status === undefined) return prospectOfFailure(exchange);
  if (status >= 500) return { mayFollow: 'server-error', why: `it answers ${answerOf(exchange)}` };
  if (LAWFUL_REFUSALS.includes(status)) return { mayFollow: 'yes' };
  if (status === 404) return prospectOfStatus('404', of, onTheWay);
  if (!isSuccess(exchange)) return { mayFollow: 'never', why: `it answers ${answerOf(exchange)}` };
  const body = jsonOf(exchange);
  const shown = stringField(successOf(exchange), 'status');
  if (isObject(body) && isObject(body['error']))
    return { mayFollow: 'never', why: `it answers ${status} with an error inside` };
  if (shown === undefined)
    return {
      mayFollow: 'never',
      why: `it answers ${status} without an ${of}: there is no status in the body`,
    };
  return prospectOfStatus(shown, of, onTheWay);
}

/** A server that crashes on a request closes the connection, and a restart may fix it. A timeout counts the same. */
function prospectOfFailure({ failure }: Exchange): Prospect {
  if (failure?.kind === 'not_http') return { mayFollow: 'never', why: 'what it answers is not HTTP' };
  return failure?.kind === 'reset' || failure?.kind === 'timeout'
    ? { mayFollow: 'server-error', why: failure.message }
    : { mayFollow: 'yes' };
}

function prospectOfStatus(status: string, of: Awaited['of'], onTheWay: Awaited['onTheWay']): Prospect {
  if (status !== '404' && !KNOWN[of].has(status))
    return {
      mayFollow: 'never',
      why: `it reads ${printable(status, 60)}, which is not a status of the contract`,
    };
  if (onTheWay === undefined || onTheWay.includes(status)) return { mayFollow: 'yes' };
  if (status === 'DESTROYED') return { mayFollow: 'destroyed', why: 'it reads DESTROYED, and not 404' };
  return { mayFollow: 'never', why: `it reads ${status}, from which that does not follow` };
}

/** Whether an answer to GET /instances can still become a list. A body without a list cannot. */
export function prospectOfList(list: Exchange): Prospect {
  const status = statusOf(list);
  if (status === undefined) return prospectOfFailure(list);
  if (LAWFUL_REFUSALS.includes(status)) return { mayFollow: 'yes' };
  if (status >= 500) return { mayFollow: 'server-error', why: `GET /instances answers ${answerOf(list)}` };
  const value = successOf(list);
  return value !== undefined && Array.isArray(value['instances'])
    ? { mayFollow: 'yes' }
    : { mayFollow: 'never', why: `GET /instances answers ${answerOf(list)}, which is no {"instances": […]}` };
}
