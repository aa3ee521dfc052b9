/** The path of an instance. The contract's client always sends the region (O: Instances, rule 1). */
export function instancePath(of: { id?: string; region?: string }, action = ''): string {
  const query = of.region === undefined ? '' : `?region=${encodeURIComponent(of.region.toWellFormed())}`;
  return `/instances/${encodeURIComponent((of.id ?? '').toWellFormed())}${action}${query}`;
}

export function volumePath(of: { id?: string }, action = ''): string {
  return `/volumes/${encodeURIComponent((of.id ?? '').toWellFormed())}${action}`;
}

export const TOKEN_PATH = '/auth/token';

const LISTS = /^\/(configurations|availability|instances|volumes\/locations)(\?|$)/;

/** Whether a request reads a list, whose length the suite cannot know. */
export function asksForList({ method, path }: { method: string; path: string }): boolean {
  return method === 'GET' && LISTS.test(path);
}

/** Whether a request lists the account's instances, most of which this run did not create. */
export function asksForInstances({ method, path }: { method: string; path: string }): boolean {
  return method === 'GET' && /^\/instances(\?|$)/.test(path);
}
