/** Files with lists that are too long for an alarm, for the operator of this server. */
export interface ListFiles {
  /** Writes the list anew where it has changed; returns its path. Rejects with the system's error. */
  write(name: string, lines: readonly string[]): Promise<string>;
  /** Never rejects. */
  remove(name: string): Promise<void>;
}
