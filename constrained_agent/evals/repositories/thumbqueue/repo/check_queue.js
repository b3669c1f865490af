"use strict";

const assert = require("node:assert/strict");

const { JobQueue } = require("./queue.js");

// A promise that never settles lets node end quietly; only a run that came to its end counts.
let finished = false;
process.on("exit", (code) => {
	if (code === 0 && !finished) {
		console.error("the queue hangs: a job or idle() never settled");
		process.exitCode = 1;
	}
});

function gate() {
	const made = {};
	made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
	return made;
}

async function keepsToItsLimit() {
	const queue = new JobQueue(2);
	const gates = [gate(), gate(), gate()];
	const results = gates.map((each) => queue.push(() => each.promise));
	assert.deepEqual([queue.running, queue.waiting], [2, 1]);
	gates[0].resolve("first");
	assert.equal(await results[0], "first");
	await new Promise(setImmediate);
	assert.deepEqual([queue.running, queue.waiting], [2, 0]);
	gates[1].resolve("second");
	gates[2].resolve("third");
	assert.deepEqual(await Promise.all(results), ["first", "second", "third"]);
	await queue.idle();
	assert.deepEqual([queue.running, queue.waiting], [0, 0]);
}

async function goesOnAfterAFailure() {
	const queue = new JobQueue(1);
	const order = [];
	const bad = queue.push(async () => {
		order.push("bad");
		throw new Error("no such picture");
	});
	const worse = queue.push(() => {
		order.push("worse");
		throw new Error("not a function of promises");
	});
	const good = queue.push(async () => order.push("good"));
	await assert.rejects(bad, /no such picture/);
	await assert.rejects(worse, /not a function of promises/);
	assert.equal(await good, 3);
	assert.deepEqual(order, ["bad", "worse", "good"]);
	await queue.idle();
	assert.equal(queue.running, 0);
}

async function neverRunsMoreThanItMay() {
	const queue = new JobQueue(3);
	let most = 0;
	const jobs = Array.from({ length: 20 }, (_, number) =>
		queue
			.push(async () => {
				most = Math.max(most, queue.running);
				await null;
				if (number % 4 === 0) throw new Error(`job ${number}`);
			})
			.catch(() => {}),
	);
	await Promise.all(jobs);
	await queue.idle();
	assert.equal(most, 3);
	assert.equal(queue.running, 0);
}

async function main() {
	assert.throws(() => new JobQueue(0), RangeError);
	await new JobQueue(1).idle();
	await keepsToItsLimit();
	await goesOnAfterAFailure();
	await neverRunsMoreThanItMay();
	finished = true;
}

main().catch((error) => {
	console.error(error);
	process.exitCode = 1;
});
