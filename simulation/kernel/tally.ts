/** How often a run did what a report counts. */
export interface Tally {
  commands: number;
  crashes: number;
  powerCuts: number;
  pauses: number;
  partitions: number;
  clockJumps: number;
  outages: number;
}

export function emptyTally(): Tally {
  return {
    commands: 0,
    crashes: 0,
    powerCuts: 0,
    pauses: 0,
    partitions: 0,
    clockJumps: 0,
    outages: 0,
  };
}
