/** The path of an instance. The contract's client always sends the region (O: Instances, rule 1). */
export function instancePath(of: { id?: string; region?: string }, action = ''): string {
  const query = of.region === undefined ? '' : `?region=${encodeURIComponent(of.region.toWellFormed())}`;
  return `/instances/${encodeURIComponent((of.id ?? '').toWellFormed())}${action}${query}`;
}

export function volumePath(of: { id?: string }, action = ''): string {
  return `/volumes/${encodeURIComponent((of.id ?? '').toWellFormed())}${action}`;
}
