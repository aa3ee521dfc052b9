/** Files for the operator with lists that are too long for an alarm. */
export interface ListFiles {
  /** Writes the list if it has changed, and returns the file's path. Rejects with the system's error. */
  write(name: string, lines: readonly string[]): Promise<string>;
  /** Never rejects. */
  remove(name: string): Promise<void>;
}
