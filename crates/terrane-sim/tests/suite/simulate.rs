//! Simulated runs: each call of a run follows from its seed, and every answer equals that of the model.
//!
//! `TERRANE_SIM_SEEDS` and `TERRANE_SIM_START` say which seeds (default: 600 from 0),
//! `TERRANE_SIM_OPERATIONS` how many operations each has (default 300). A failure prints the script of the
//! run and a short one that fails, too; `terrane sim --replay` does them again.
#![allow(clippy::unwrap_used, reason = "a test")]

use terrane_sim::{Climate, Outcome, Script, generate, generate_in, run, shrink};

/// Runs in which a script that fails is made shorter.
const SHRINK_RUNS: u64 = 600;

/// Seeds of a full run, which meets everything that is counted.
const SEEDS: u64 = 600;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

fn do_run(seed: u64, script: &Script) -> Outcome {
    run(script).unwrap_or_else(|failure| {
        let short = shrink(script, SHRINK_RUNS).map_or_else(String::new, |(script, failure)| {
            format!("in short, operation {}: {}\n{script}", failure.at, failure.message)
        });
        panic!("seed {seed}, operation {}: {}\n{script}\n{short}", failure.at, failure.message)
    })
}

#[test]
fn every_answer_is_the_models() {
    let start = number("TERRANE_SIM_START", 0);
    let operations = number("TERRANE_SIM_OPERATIONS", 300);
    let seeds = number("TERRANE_SIM_SEEDS", SEEDS);
    let mut sum = Outcome::default();
    for seed in start..start + seeds {
        sum.add(&do_run(seed, &generate(seed, operations)));
    }
    println!("{sum:?}");
    assert!(sum.crashes > 0, "{sum:?}");
    if seeds < SEEDS {
        // Too few to meet everything.
        return;
    }
    assert!(
        sum.crashes > 200 && sum.broken > 50 && sum.full > 0 && sum.silent > 50 && sum.nested > 500,
        "{sum:?}"
    );
    assert!(sum.scrubbed > 100 && sum.looks > 100, "{sum:?}");
    for (name, count) in sum.did.iter() {
        assert!(count > 0, "nothing was done that is counted as {name:?}");
    }
}

#[test]
fn a_seed_decides_everything() {
    for seed in 0..24 {
        let script = generate(seed, 250);
        let (first, second) = (do_run(seed, &script), do_run(seed, &script));
        assert_eq!(
            first.trace,
            second.trace,
            "seed {seed} ({:?}): the second run differed",
            Climate::of(seed)
        );
        assert_eq!(first.answers, second.answers);
    }
    let traces = [1, 2].map(|seed| do_run(seed, &generate_in(seed, 100, Climate::Fair)).trace);
    assert_ne!(traces[0], traces[1], "another seed is another run");
}

#[test]
fn a_script_is_text_and_back() {
    for seed in 0..200 {
        let script = generate(seed, 300);
        let text = script.to_string();
        assert_eq!(text.parse::<Script>().unwrap(), script, "{text}");
    }
    for wrong in
        ["put default 1", "scan t 1 2 forward 3", "crash power:x after 1", "fault Nothing broken * skip 1"]
    {
        assert!(wrong.parse::<Script>().is_err(), "{wrong}");
    }
}

/// Scripts of failures that were found and repaired.
const FOUND: [&str; 32] = [
    "seed 1082\noption journal=off\nput default 1 4:1\npause\nreopen 0\ncheck",
    "seed 1237\noption segment_bytes=65536\nbatch default:1:42:219\nfault Write broken * skip 0\nsteps 1\n\
     put default 4 80627:273\nsync\ncrash power:5 after 0\ncheck",
    "seed 985\ndelete default 222\nfault Sync lie /journal skip 0\ncrash kill after 0\ncrash power:3 after 0\ncheck",
    "seed 9271\nput default 7 7:19\nfault Sync lie /journal skip 1 lasting\nreopen 0\n\
     crash power:13323571678314794419 after 0\ncheck",
    "seed 11045\nfault Read flip:12365315931079579993 MANIFEST skip 1\ncrash power:9848327902370694322 after 0\n\
     crash kill after 0\ncheck",
    "seed 11099\nput default 125 5:264\nfault Read flip:12765596672445899862 MANIFEST skip 3\n\
     crash power:6472883539415469826 after 4\ncreate t1\ncrash power:9609845826937247778 after 0\nreopen 0\ncheck",
    "seed 1001865\noption segment_bytes=65536\nput default 1 4:1\nsteps 4\nfault Allocate full .seg skip 0 lasting\n\
     put default 2 80000:2\nflush\nheal\nput default 3 5:3\nflush\nquiesce\ncheck",
    "seed 2000755\ncreate t0\nfault Allocate broken .ext skip 0\nput t0 8 5:141\nfault Remove broken /data skip 0\n\
     compact t0 (1795 )134\nheal\ncompact t0 (1795 )134\ncheck",
    "seed 4000225\noption scrub_bytes_per_second=65536\nput default 1 6:152\nflush\nlevel default 3\n\
     fault Read full /data skip 1 lasting\nlevel default 3\nheal\nreopen 0",
    "seed 4000166\ncreate t2\nbatch t2:179:51:593\nflush\nduring 4 scan t2 [7 ]155 forward 8 at 2\ndrop t2",
    "seed 4001653\nput default 19 7:494\ncreate t1\nput t1 26 7:495\nfault Sync full MANIFEST skip 0\nflush\n\
     fault Sync full * skip 1\nsteps 1\nroom 18446744073709551615\nreopen 0",
    "seed 4002247\noption block_bytes=2048\noption compression=lz4\noption compression_last=none\n\
     batch default:11:509:70\nput default 6 19:71\nfault Read broken /data skip 19 lasting\nput default 39 861:76\n\
     put default 17 1464:77\nput default 4 1401:78\nput default 32 922:81\ncompact default (6 ]14\n\
     scan default (- )- both:1241191029631771670 1\nget default 17\ncrash power:17267227184397316805 after 0\n\
     put default 8 7:92\nfault Sync full .seg skip 0 lasting\nflush\nsync\nget default 22 at 0\nlevel default 0\nheal\n\
     reopen 0",
    "seed 4005859\noption segment_bytes=131072\ncreate t2\nput t2 428 4:72\nfault Sync lie /journal skip 13 lasting\n\
     steps 1\nbatch default:1:171493:81\nbatch t2:26:1493:83 sync\nbatch default:1:95410:89 sync\n\
     batch t2:5:194:111 sync\nput default 1675 7:112\nfault Write broken * skip 3 lasting\nsync\nrun default\n\
     put t2 1072 6:133 sync\nput t2 1 8:134 sync\nbatch t2:190:742:135 sync\nheal\nflush",
    "seed 4016715\noption segment_bytes=65536\noption memtable_bytes=65536\nput default 1 60000:1\nput default 2 60000:2\n\
     room 4000\nsteps 1\nduring 0 batch default:5:50:7\ncrash power:1 after 22\nroom 18446744073709551615",
    "seed 6000116\noption segment_bytes=65536\nput default 1 60000:1\nput default 2 60000:2\nflush\nrest",
    "seed 5100265\noption segment_bytes=65536\noption memtable_bytes=65536\nput default 6 66572:46 sync\nrest",
    "seed 9104166\noption memory_bytes=16777216\ncreate t1\nput t1 0 8:175\nreopen 1726213103220247522\n\
     crash kill after 1\nflush\nput t1 18 1453:253\nbatch t1:586:782:256\nflush\nput default 1975 761:257\n\
     put default 1946 1486:258\nput t1 1395 681:259\nduring 4 batch default:1641:1124:262\n\
     batch default:104:798:264 default:503:1344:265 t1:1283:1301:266 t1:178:1338:267 default:237:661:268 default:743:511:269 t1:1446:385:270\n\
     batch t1:1453:213:271 default:766:1330:272 default:1995:1222:273 default:640:1354:274 t1:1304:1336:275\nrest",
    "seed 9119341\ndelete default 34\ncrash power:87571691444425907 after 0\nput default 2 7:3\ncompact default \
     [26 ]4\nbatch default:19:- default:28:1352:10 default:22:426:11 default:14:579:13\nput default 31 352:15\n\
     put default 26 231:16 sync\nput default 12 610:18\nbatch default:23:207:29 default:38:1360:31\n\
     steps 3\nbatch default:0:1480:49 default:7:461:50 default:32:287:51 default:4:1452:52 default:9:970:53 \
     default:33:504:54 default:27:967:55 default:1:1040:57 default:20:982:59 default:37:1021:60\nput default 16 \
     997:62\nreopen 15029777974897546619\nsteps 4\ncreate t0\nput t0 24 8:90 sync\ncompact t0 (- )35\n\
     batch default:4:772:144 t0:30:308:145\nfault Sync lie .ext skip 1\ncompact default (- )0\nquiesce\n\
     crash power:7984927152907191440 after 0\nflush\ncrash power:4812310369533007500 after 0\nrest",
    "seed 9101287\nfault Write full * skip 0 lasting\nfault SetLen full * skip 0\nreopen 0",
    "seed 9201505\noption scrub_bytes_per_second=65536\noption compression=none\noption compression_last=none\n\
     batch default:0:774:383\nrun default\nfault Read broken * skip 0 lasting\nrest\nrest\nheal\nreopen 0",
    "seed 9405023\noption background_threads=1\nput default 172 8:52\nflush\nfault Read flip:6318515319880767295 MANIFEST skip 0\n\
     crash power:8515922054590049294 after 0\ncheck",
    "seed 9401579\nbatch default:1690:45:4 sync\nflush\nfault Read flip:17087524864400716897 * skip 1\n\
     crash power:1981124413598275831 after 1\nput default 90 8:163 sync\ncheck",
    "seed 8002797\noption memory_bytes=25165824\nduring 2 batch default:0:- default:0:1062:228\nwait 112\n\
     put default 0 5:233\nflush\nput default 14 819:234\nput default 6 499:235\nput default 2 1403:236\n\
     put default 32 1495:237\nput default 0 1459:238\nput default 0 1425:239\nput default 38 725:240\n\
     put default 29 1051:241\nbatch default:35:1365:262 default:4:287:263 default:13:- default:28:833:264\n\
     put default 12 1084:265\nreopen 17448017265056573369\nput default 18 1088:266\n\
     batch default:30:1498:267\nput default 2 887:268\nput default 24 25:269\nput default 3 1389:330\n\
     batch default:19:498:331 default:37:702:332\nbatch default:31:- default:30:1356:333\n\
     batch default:11:1247:334 default:18:243:335\n\
     batch default:5:330:336 default:1:- default:12:905:337 default:22:-\n\
     batch default:0:329:339 default:7:596:340\nput default 20 718:341\n\
     batch default:2:588:342 default:38:864:343 sync\nbatch default:0:653:344\nquiesce\n\
     put default 1 1423:345\nput default 0 1315:346\nput default 11 1081:347\nput default 21 921:348\n\
     put default 1 1111:349\nbatch default:21:1297:350\nbatch default:13:1498:351\nput default 13 1293:415\n\
     put default 25 809:438\nput default 1 406:439\nput default 3 1010:441\nput default 23 922:442\n\
     put default 30 813:443\nput default 37 661:444\nput default 5 813:445\nput default 1 650:446\nrest",
    "seed 9705585\nonce default 2199023255555 0:13806575483205699145\nsnapshot 2\nroom 214537\n\
     run default\nonce default 2199023255555 0:9350361956069733122\n\
     once default 2199023255555 9:10473687914875321767\nonce default 2199023255555 37:9554171306988891863\nflush\n\
     room 18446744073709551615\nreopen 0\ncheck",
    "seed 9706255\noption memtable_bytes=262144\ncreate t0 11274403545735765052\nput t0 4 7:43\n\
     reopen 2822498810425868400\nrun t0\nfault Rename broken * skip 0\nbatch t0:3:3:176 default:2:10:177\nsteps 4\n\
     checkpoint 2\ncrash power:9914886174516784338 after 2 again 16\ncompact t0 (2 ]2\nrest",
    // An external file that was taken in, and could not be removed.
    "seed 10000513\noption merge_operator=append\nfault Remove broken * skip 0\ningest default 13676165000394522824",
    // A durable commit of a transaction that only read for update.
    "seed 7\noption merge_operator=append\nput default 1 8:3\ntransact default 430\ncrash power:5 after 0\ncheck",
    // A write behind one whose sync failed: after a crash in it the one in doubt may be there, it may not.
    "seed 11000149\noption merge_operator=append\nmerge default 1099511627778 9:99 sync\nfault Sync lie * skip 1\n\
     merge default 1099511627779 9:15847899746500565547 sync\nfault Sync lie .ext skip 0\n\
     merge default 1099511627779 2:12206215127347578956 sync\ningest t1,default 7357539387478833552\n\
     crash kill after 8\ningest default,t1 4015520669160330771",
    "seed 70000117\n\
     option segment_bytes=65536\n\
     option merge_operator=append\n\
     create t0\n\
     create t1\n\
     batch t1:30:1115:92 sync\n\
     flush\n\
     batch default:12:140:303 t1:7:266:305 default:1:1225:306 default:32:1001:307 t1:3:18038:308 default:39:616:309 t0:8:375:310 default:0:673:311 default:37:322:312 t0:38:140:313\n\
     put t0 3 404:314 sync\n\
     put t0 19 40788:331 sync\n\
     put default 8 119761:347 sync\n\
     put t1 2 7:348 sync\n\
     crash kill after 36\n\
     checkpoint 0\n\
     crash power:5261069442452732117 after 0",
    "seed 70006951\n\
     option merge_operator=append\n\
     put default 2 4:2\n\
     crash power:16855396161373634675 after 0\n\
     crash kill after 13\n\
     once default 2199023255554 22:12252934644152476618\n\
     transact default,t0 468173380502743274\n\
     put default 2 5:177\n\
     reopen 0\n\
     transact t0,default 4451491174776651477\n\
     create t1\n\
     reopen 17570746583794524870\n\
     put t1 4 464:305\n\
     transact t1 16633233625845327048\n\
     drop t1\n\
     crash power:18145704829714114086 after 0",
    // A flush that is requested after failures have ended reports an attempt that began after the request.
    "seed 11101327\noption merge_operator=append\nput default 28 6:81\ncreate t0\nflush\n\
     fault Write broken * skip 0 lasting\nbatch t0:19:1268:325\ncompact t0 (- )-\nheal\n\
     ingest t0,default 5035024442668513665",
    // A backup whose last sync failed is found by the next life, and need not be durable.
    "seed 16002379\noption merge_operator=append\nsteps 5\ncreate t1\nput t1 0 5:49\nrun t1\n\
     fault SyncDir lie * skip 18 lasting\ncrash power:5759643970374042698 after 57\nreopen 7502283633021713530\n\
     transact t1 5840484850090885526\nflush\nreopen 0\nbatch t1:1:4:62\nload t1 13146361663227362907\nreopen 0\n\
     backup 1 0\ncrash kill after 0\ncrash power:4466138247908042011 after 0",
];

#[test]
fn scripts_of_repaired_bugs_pass() {
    for text in FOUND {
        let script: Script = text.parse().unwrap();
        do_run(0, &script);
    }
}

/// `scrub` compares what scrubbing found with what a check finds; here it has something to find, and before
/// the rot nothing.
#[test]
fn scrubbing_finds_rotten_extents_and_no_others() {
    let mut found = 0;
    for seed in 0..12 {
        let puts: String = (0..16).map(|key| format!("put default {key} 180000:{}\n", 3 * key + 3)).collect();
        let before = format!("seed {seed}\noption scrub_bytes_per_second=1048576\n{puts}flush\nscrub\n");
        let sound = do_run(seed, &before.parse().unwrap());
        assert!(sound.scrubbed > 1 && sound.found == 0, "{sound:?}");
        let after = format!("{before}decay {seed}\nscrub\ncheck");
        found += do_run(seed, &after.parse().unwrap()).found;
    }
    assert!(found > 3, "most of the bits hit an extent: {found}");
}

/// `rest` compares the bytes that the device holds with those in use. Each round leaves much that only waits
/// to be used again.
#[test]
fn at_rest_unneeded_space_is_freed_on_the_device() {
    for seed in 0..8 {
        let round = |round: u64| {
            let puts: String =
                (0..24).map(|key| format!("put default {key} 150000:{}\n", 31 * key + round)).collect();
            format!("{puts}flush\ncompact default (- )-\nrest\nget default 7\n")
        };
        let rounds: String = (0..4).map(round).collect();
        let text =
            format!("seed {seed}\noption segment_bytes=262144\n{rounds}crash power:{seed} after 0\ncheck");
        do_run(seed, &text.parse().unwrap());
    }
}

/// In a world whose clock stands still but for what waits: so many seconds more are so many bytes more,
/// neither less nor more than the extents that a piece of work rounds up to and the tenth of a second that a
/// look may come late.
#[test]
fn scrubbing_keeps_to_its_rate() {
    const RATE: u64 = 128 << 10;
    let puts: String = (0..16).map(|key| format!("put default {key} 60000:{}\n", 3 * key + 3)).collect();
    let bytes_in = |seconds: u64| {
        let waits = "wait 100\nsteps 4\n".repeat(10 * seconds as usize);
        let text = format!("seed 3\noption scrub_bytes_per_second={RATE}\n{puts}flush\nquiesce\n{waits}");
        do_run(3, &text.parse().unwrap()).scrubbed_bytes
    };
    let (short, long) = (bytes_in(10), bytes_in(70));
    let expected = 60 * RATE;
    let extra = long - short;
    assert!(extra <= expected + expected / 20, "{extra} bytes in a minute at {RATE} a second");
    assert!(extra >= expected * 3 / 4, "{extra} bytes in a minute at {RATE} a second");
}

/// Work that fails waits before it is tried again: turns of the background pass without an attempt.
#[test]
fn a_trim_that_fails_is_not_tried_without_end() {
    let mut met = 0;
    for skip in 0..12 {
        let text = format!(
            "seed 5\noption segment_bytes=65536\nput default 1 60000:1\nput default 2 60000:2\nput default 3 60000:3\n\
             put default 4 10:3\nfault Write full MANIFEST skip {skip} lasting\nflush\nsteps 500"
        );
        let outcome = do_run(5, &text.parse().unwrap());
        met += u64::from(outcome.full > 0);
        assert!(outcome.full < 60, "skip {skip}: {outcome:?}");
    }
    assert!(met > 3, "the fault was met in {met} runs");
}
