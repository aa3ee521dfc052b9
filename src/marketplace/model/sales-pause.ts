/** An operator has paused the sales of a provider, or of one of its regions or offers. */
export interface SalesPause {
  providerId: string;
  /** Empty: all regions. */
  region: string;
  /** Empty: all offers, and volumes too. */
  offerId: string;
  /** Shown to the users. */
  reason: string;
  since: number;
  /** Null: until it is resumed. */
  until: number | null;
  /** The operator. */
  by: string;
}

export type SalesScope = Pick<SalesPause, 'providerId' | 'region' | 'offerId'>;

export interface PauseReader {
  /** Includes pauses that are over. Takes no lock. */
  list(): Promise<SalesPause[]>;
}
export interface PauseWriter extends PauseReader {
  /** Replaces a pause of the same scope. */
  put(pause: SalesPause): Promise<void>;
  remove(scope: SalesScope): Promise<void>;
}

/** The pauses in force. */
export async function pausesNow({ pauses }: { pauses: PauseReader }, now: number): Promise<SalesPause[]> {
  return inForce(await pauses.list(), now);
}

export function inForce(pauses: readonly SalesPause[], now: number): SalesPause[] {
  return pauses.filter(({ until }) => until === null || until > now);
}

/** The pause of an offer in a region, or of the region's volumes if there is no offer; undefined: it is sold. */
export function pauseOf(
  pauses: readonly SalesPause[],
  { providerId, region, offerId }: { providerId: string; region: string; offerId?: string },
): SalesPause | undefined {
  return pauses.find(
    (pause) =>
      pause.providerId === providerId &&
      (pause.region === '' || pause.region === region) &&
      (pause.offerId === '' || pause.offerId === offerId),
  );
}
