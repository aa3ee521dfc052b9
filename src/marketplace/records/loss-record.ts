/** A deployment or a volume that its provider denies: 404, and nobody here asked for its end. */
export interface LossRecord {
  subjectId: string;
  kind: 'deployment' | 'volume';
  providerId: string;
  /** When it ended by that, or was first held. */
  at: number;
  /** Too many are denied: it is kept as it is until the provider knows it again, or an operator accepts. */
  isHeld: boolean;
}
