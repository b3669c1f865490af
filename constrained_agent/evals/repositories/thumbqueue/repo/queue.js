"use strict";

/**
 * Runs jobs (functions that return promises), a few at a time, in the order in which they came.
 * Thumbnails take a lot of memory, so `limit` is small.
 */
class JobQueue {
	#limit;
	#running = 0;
	#waiting = [];
	#idle = [];

	constructor(limit) {
		if (!Number.isInteger(limit) || limit < 1) {
			throw new RangeError(`limit is a whole number from 1, not ${limit}`);
		}
		this.#limit = limit;
	}

	get running() {
		return this.#running;
	}

	get waiting() {
		return this.#waiting.length;
	}

	/** Resolves or rejects as the job does. */
	push(job) {
		return new Promise((resolve, reject) => {
			this.#waiting.push({ job, resolve, reject });
			this.#fill();
		});
	}

	/** Resolves when no job is running or waiting. */
	idle() {
		return new Promise((resolve) => {
			this.#idle.push(resolve);
			this.#fill();
		});
	}

	#fill() {
		while (this.#running < this.#limit && this.#waiting.length > 0) {
			this.#run(this.#waiting.shift());
		}
		if (this.#running === 0) {
			for (const resolve of this.#idle.splice(0)) {
				resolve();
			}
		}
	}

	async #run(entry) {
		this.#running += 1;
		try {
			const value = await entry.job();
			entry.resolve(value);
			this.#running -= 1;
			this.#fill();
		} catch (error) {
			entry.reject(error);
		}
	}
}

module.exports = { JobQueue };
