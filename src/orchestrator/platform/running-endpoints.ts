/**
 * The instance running at each address and port in the last listing of each platform. Two platforms may share one
 * address.
 */
export class RunningEndpoints {
  readonly #ids = new Map<string, ReadonlyMap<string, string>>();

  replace(platform: string, ids: ReadonlyMap<string, string>): void {
    this.#ids.set(platform, ids);
  }

  /** The instance of another platform that runs at this endpoint. */
  elsewhere(platform: string, subject: string): string | undefined {
    for (const [other, ids] of this.#ids) {
      const id = other === platform ? undefined : ids.get(subject);
      if (id !== undefined) return id;
    }
    return undefined;
  }
}
